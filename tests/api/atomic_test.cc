// SPDX-License-Identifier: Apache-2.0
// Atomics of several processors, engines and media on one word.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <set>
#include <thread>

#include "tests/api/helpers.h"
#include "tests/drivers/window_file.h"

namespace urma::test {
namespace {

constexpr Rights words_rights = Rights::read | Rights::write | Rights::atomic;

std::atomic_ref<uint64_t> word_of(const Segment& segment, size_t at = 0) {
  return std::atomic_ref(reinterpret_cast<uint64_t*>(segment.bytes().data())[at]);
}

TEST_CASE(
    "atomics work on every medium, on memory of the device and on memory of the application") {
  for (const std::string_view driver : media) {
    const Medium medium(driver);
    Side owner = Side::open(medium.text(), {.threads = Threads::served});
    Side user = Side::open(medium.text(), {.threads = Threads::inlined});
    alignas(64) std::array<std::byte, 4096> memory{};
    for (const AtomicDomain domain : {AtomicDomain::processor, AtomicDomain::engine}) {
      for (const bool own : {true, false}) {
        INFO(driver << " domain " << int(domain) << " own " << own);
        const Segment segment =
            own ? owner.device.register_memory(memory, words_rights, domain).value()
                : owner.device.allocate(4096, words_rights, domain).value();
        const RemoteSegment there = user.device.import(segment.descriptor()).value().segment;
        const uint64_t copied = user.device.stats().value().copied;
        word_of(segment, 1) = 10;
        CHECK(run_one(user.jetty, fetch_add(there, 8, 5)).fetched() == 10);
        CHECK(run_one(user.jetty, compare_swap(there, 8, 15, 20)).fetched() == 15);
        CHECK(run_one(user.jetty, compare_swap(there, 8, 15, 30)).fetched() == 20);
        CHECK(run_one(user.jetty, fetch_sub<uint8_t>(there, 8, 21)).fetched() == 20);
        CHECK(run_one(user.jetty, atomic_store(there, 8, Update::add, 1)).ok());
        CHECK(word_of(segment, 1) == 256);
        CHECK(run_one(user.jetty, fetch_add(there, 9, 1)).status == Status::bad_work);
        CHECK(run_one(user.jetty, fetch_add(there, 4096, 1)).status == Status::remote_access);
        // The owner's own atomics work, too.
        word_of(segment, 1) = 7;
        CHECK(run_one(owner.jetty, fetch_xor(segment.local(), 8, 2)).fetched() == 7);
        CHECK(word_of(segment, 1) == 5);
        // A user that maps the memory executes the atomic itself, without a packet, if the
        // segment's domain is the processor.
        const bool by_itself = there.mapped() && domain == AtomicDomain::processor;
        CHECK((user.device.stats().value().copied > copied) == by_itself);
        memory.fill(std::byte{0});
      }
    }
  }
}

TEST_CASE(
    "when the last of a stream of atomics completes, the unsignalled ones before it are executed") {
  for (const std::string_view driver : media) {
    const Medium medium(driver);
    Side owner = Side::open(medium.text(), {.threads = Threads::served});
    Side user = Side::open(medium.text(), {.threads = Threads::inlined});
    const Segment segment = owner.device.allocate(4096, words_rights).value();
    const RemoteSegment there = user.device.import(segment.descriptor()).value().segment;
    uint64_t posted = 0;
    for (unsigned round = 0; round < 50; ++round) {
      std::vector<Work> works;
      for (unsigned i = 0; i < 20; ++i) works.push_back(fetch_add(there, 64, 1).unsignalled());
      works.push_back(fetch_add(there, 64, 1));
      REQUIRE(user.jetty.post(works) == works.size());
      posted += works.size();
      const auto completions = collect(user.jetty, 1);
      REQUIRE(completions.size() == 1);
      REQUIRE(completions[0].ok());
      REQUIRE(word_of(segment, 8) == posted);
    }
  }
}

TEST_CASE("the fetched value is stored in memory of the application, without a poll") {
  for (const std::string_view driver : media) {
    INFO(driver);
    const Medium medium(driver);
    Side owner = Side::open(medium.text(), {.threads = Threads::served});
    Side user = Side::open(medium.text(), {.threads = Threads::served});
    const Segment segment = owner.device.allocate(4096, words_rights).value();
    const RemoteSegment there = user.device.import(segment.descriptor()).value().segment;
    constexpr uint64_t other = 0x1111111111111111;
    alignas(8) std::array<uint64_t, 3> words{other, other, other};
    const auto fetch = [&](Work work, uint64_t expected) {
      words.fill(other);
      word_of(segment, 1) = 0x0807060504030201;
      REQUIRE(user.jetty.post(work.into(&words[1])) == 1);
      const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
      while (std::atomic_ref(words[1]) != expected && std::chrono::steady_clock::now() < until) {
        std::this_thread::sleep_for(std::chrono::microseconds(100));
      }
      CHECK(words[1] == expected);
      CHECK((words[0] == other && words[2] == other));
      const auto done = collect(user.jetty, 1);
      REQUIRE(done.size() == 1);
      CHECK(done[0].ok());
    };
    fetch(fetch_add(there, 8, 1), 0x0807060504030201);
    fetch(swap<uint32_t>(there, 12, 1), other << 32 >> 32 << 32 | 0x08070605);
    fetch(fetch_or<uint16_t>(there, 10, 1), (other & ~uint64_t{0xffff}) | 0x0403);
    fetch(compare_swap<uint8_t>(there, 9, 5, 1), (other & ~uint64_t{0xff}) | 0x02);
    // Memory that is not aligned has the value when the work has completed.
    words.fill(other);
    word_of(segment, 1) = 0x0807060504030201;
    auto* const odd = reinterpret_cast<std::byte*>(words.data()) + 9;
    CHECK(run_one(user.jetty, fetch_add<uint32_t>(there, 8, 1).into(odd)).ok());
    CHECK(words[1] == 0x1111110403020111);
    CHECK((words[0] == other && words[2] == other));
    // An unsignalled one has no completion, but a value.
    words.fill(other);
    REQUIRE(user.jetty.post(fetch_add(there, 8, 1).into(&words[1]).unsignalled()) == 1);
    CHECK(run_one(user.jetty, fetch_add(there, 8, 1)).ok());
    CHECK(words[1] == word_of(segment, 1) - 2);
    // Failures store nothing.
    words.fill(other);
    CHECK(run_one(user.jetty, fetch_add(there, 9, 1).into(&words[1])).status == Status::bad_work);
    CHECK(run_one(user.jetty, fetch_add(there, 4096, 1).into(&words[1])).status ==
          Status::remote_access);
    CHECK(run_one(user.jetty, atomic_store(there, 8, Update::add, 1).into(&words[1])).status ==
          Status::bad_work);
    CHECK(words[1] == other);
  }
}

// The value that an atomic fetches is not stored in memory that was unregistered, whatever arrives.
TEST_CASE("unregistering the memory of fetched values ends the atomics that would store there") {
  const Medium medium("udp:");
  Side owner = Side::open(medium.text(), {.threads = Threads::inlined});
  Side user = Side::open(medium.text(), {.threads = Threads::served});
  const Segment segment = owner.device.allocate(4096, words_rights).value();
  const RemoteSegment there = user.device.import(segment.descriptor()).value().segment;
  alignas(64) std::array<std::byte, 4096> memory{};
  Segment local = user.device.register_memory(memory, Rights::local_only).value();
  // The owner does not run, so the atomic waits.
  REQUIRE(user.jetty.post(fetch_add(there, 0, 1).into(memory.data() + 8)) == 1);
  local.unregister().value();
  const auto done = collect(user.jetty, 1);
  REQUIRE(done.size() == 1);
  CHECK((done[0].status == Status::unknown || done[0].status == Status::flushed));
  memory.fill(std::byte{7});
  for (unsigned i = 0; i < 100; ++i) (void)owner.jetty.wait(std::chrono::milliseconds(1));
  CHECK(std::ranges::all_of(memory, [](std::byte one) { return one == std::byte{7}; }));
}

// The segment is unregistered while a peer adds to its words. The sum must lie between the number
// of atomics that ended `ok` and that number plus those that ended `unknown`.
TEST_CASE(
    "atomics on a segment that is unregistered meanwhile: the sum agrees with their statuses") {
  const WindowFile window("atomic-gone");
  Side owner = Side::open(window.device("?size=64M"), {.threads = Threads::served});
  Side user = Side::open(window.device(""), {.threads = Threads::served});
  for (unsigned round = 0; round < 20; ++round) {
    Segment segment = owner.device.allocate(4096, words_rights).value();
    const RemoteSegment there = user.device.import(segment.descriptor()).value().segment;
    REQUIRE(run_one(user.jetty, fetch_add(there, 0, 1)).ok());
    std::atomic<bool> over{false};
    std::thread revokes([&] {
      std::this_thread::sleep_for(std::chrono::microseconds(50 * round));
      segment.unregister().value();
      over = true;
    });
    uint64_t ok = 1, unknown = 0;
    for (Status status = Status::ok; status != Status::remote_access;) {
      status = run_one(user.jetty, fetch_add(there, 0, 1)).status;
      ok += status == Status::ok;
      unknown += status == Status::unknown;
      REQUIRE(
          (status == Status::ok || status == Status::unknown || status == Status::remote_access));
    }
    revokes.join();
    CHECK(word_of(segment) >= ok);
    CHECK(word_of(segment) <= ok + unknown);
  }
}

// One word is changed by the local processor, by two devices through packets or by copies, and by a
// compare-and-swap loop.
TEST_CASE("no update is lost when threads change one word in all ways concurrently") {
  for (const std::string_view driver : media) {
    for (const AtomicDomain domain : {AtomicDomain::processor, AtomicDomain::engine}) {
      INFO(driver << " domain " << int(domain));
      const Medium medium(driver);
      Side owner = Side::open(medium.text(), {.threads = Threads::served});
      // In a window, all processes map the memory that a device allocates, but not memory of the
      // application.
      const Segment mapped = owner.device.allocate(4096, words_rights, domain).value();
      constexpr uint64_t each = 2000;
      std::atomic<uint64_t> wrong{0};
      const auto add = [&](bool compare) {
        Side side = Side::open(medium.text(), {.threads = Threads::inlined});
        const RemoteSegment there = side.device.import(mapped.descriptor()).value().segment;
        uint64_t last = 0;
        for (uint64_t done = 0; done < each;) {
          const Work work =
              compare ? compare_swap(there, 0, last, last + 1) : fetch_add(there, 0, 1);
          if (side.jetty.post(work) != 1) ++wrong;
          const auto completions = collect(side.jetty, 1);
          if (completions.size() != 1 || !completions[0].ok()) {
            ++wrong;
            return;
          }
          const uint64_t fetched = completions[0].fetched();
          done += !compare || fetched == last;
          last = compare && fetched == last ? last + 1 : fetched;
        }
      };
      std::thread first(add, false), second(add, true);
      std::thread own([&] {
        Jetty jetty = owner.device.jetty({.berths = 8}).value();
        for (uint64_t i = 0; i < each; ++i) {
          if (domain == AtomicDomain::processor) {
            word_of(mapped).fetch_add(1);
          } else if (jetty.post(fetch_add(mapped.local(), 0, 1)) != 1 ||
                     collect(jetty, 1).size() != 1) {
            ++wrong;
          }
        }
      });
      first.join();
      second.join();
      own.join();
      CHECK(wrong == 0);
      CHECK(word_of(mapped) == 3 * each);
    }
  }
}

}  // namespace
}  // namespace urma::test
