// SPDX-License-Identifier: Apache-2.0
// S4 over bypass: memory of a window is revoked and reused while another process copies to it at
// full rate and is stopped at random moments. With URMA_LONG there are 10^5 cycles, or as many as
// its value says.

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <optional>
#include <thread>

#include "base/prng.h"
#include "tests/drivers/window_file.h"
#include "tests/fresh_seed.h"
#include "tests/processes/bystanders.h"
#include "tests/processes/churn.h"
#include "tests/processes/shared_memory.h"
#include "tests/sanitized.h"

namespace urma::test {
namespace {

constexpr std::byte poison{0xee};
constexpr std::byte untouched{0xcd};
constexpr size_t segment_bytes = 256 << 10;

double milliseconds(Duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

int cycles() {
  const char* const asked = std::getenv("URMA_LONG");
  if (asked != nullptr) return std::atoi(asked) > 1 ? std::atoi(asked) : 100'000;
  return sanitized ? 400 : 2'000;
}

void tell(Churn& churn, const RemoteSegment& segment) {
  churn.number += 1;
  churn.address = segment.address;
  churn.bytes = segment.bytes;
  churn.token_id = number(segment.token_id);
  churn.token = number(segment.token);
  churn.number += 1;
}

// Every ten milliseconds, stops a process for one or two, whatever that process and this one are
// doing.
class Stopping {
 public:
  explicit Stopping(const Child& child) : child_(child), thread_([this] { loop(); }) {}
  Stopping(const Stopping&) = delete;
  Stopping& operator=(const Stopping&) = delete;
  ~Stopping() {
    over_ = true;
    thread_.join();
  }

 private:
  void loop() {
    Prng prng(fresh_seed());
    while (!over_) {
      std::this_thread::sleep_for(std::chrono::microseconds(prng.below(20'000)));
      child_.stop();
      std::this_thread::sleep_for(std::chrono::microseconds(prng.between(700, 2'500)));
      child_.go_on();
    }
  }

  const Child& child_;
  std::atomic<bool> over_{false};
  std::thread thread_;
};

void print(const char* what, std::vector<Duration>& took) {
  if (took.empty()) return;
  std::ranges::sort(took);
  const auto at = [&](double part) {
    return milliseconds(took[static_cast<size_t>(part * static_cast<double>(took.size() - 1))]);
  };
  std::printf("S4, copies, %s %zu: unregister took %.3f ms, p90 %.3f, p99 %.3f, at most %.3f\n",
              what, took.size(), at(0.5), at(0.9), at(0.99), at(1));
}

void take_away_and_reuse(const std::string& options) {
  const WindowFile window("s4");
  const std::string device = window.device(options);
  Side here = Side::open(device);
  const SharedMemory<Churn> shared;
  Churn& churn = *shared;
  here.device.publish("churned", here.segment).value();
  const Child writer({URMA_TEST_PEER, device, "churn", "urma://localhost/churned", shared.path()});
  REQUIRE(writer.said() == "ready");
  Segment beside = here.device.allocate(segment_bytes).value();
  std::ranges::fill(beside.bytes(), untouched);
  INFO("URMA_TEST_SEED=" << fresh_seed());
  Prng prng(fresh_seed());
  const auto pause = [&](uint64_t most_us) {
    const Time until = read_clock() + std::chrono::microseconds(prng.below(most_us));
    while (read_clock() < until) std::this_thread::yield();
  };
  std::vector<Duration> free;  // no process held it when it was revoked
  std::vector<Duration> held;  // a stopped process held it
  uint64_t dirty = 0;
  uint64_t failed = 0;
  std::optional<Stopping> stopping(std::in_place, writer);
  for (int cycle = 0; cycle < cycles(); ++cycle) {
    Segment segment = here.device.allocate(segment_bytes).value();
    REQUIRE(segment.mapped());
    tell(churn, segment.local());
    for (const Time begun = read_clock(); churn.seen != churn.number;) {
      REQUIRE(since(begun) < patience);
      std::this_thread::yield();
    }
    pause(150);
    const Time begun = read_clock();
    failed += !segment.unregister().ok();
    const Duration took = since(begun);
    (here.device.quarantined().value().empty() ? free : held).push_back(took);
    std::ranges::fill(segment.bytes(), poison);
    pause(prng.chance(0.05) ? 3000 : 100);
    dirty += !all_are(segment.bytes(), poison);
  }
  stopping.reset();
  writer.stop();
  const auto ended = [&](Status status) {
    return static_cast<unsigned long long>(churn.ended[static_cast<size_t>(status)]);
  };
  print("free", free);
  print("held", held);
  std::printf("S4, copies: %llu works done, %llu refused\n", ended(Status::ok),
              ended(Status::remote_access));
  CHECK(dirty == 0);
  CHECK(failed == 0);
  CHECK_FALSE(held.empty());
  CHECK(all_are(beside.bytes(), untouched));
  CHECK(ended(Status::ok) > static_cast<uint64_t>(cycles()));
  CHECK(ended(Status::remote_access) > 0);
}

TEST_CASE("S4: after unregister no copy changes the memory, wherever its process was stopped") {
  take_away_and_reuse("?size=16M");
}

TEST_CASE("S4: after unregister no copy changes memory that was handed over") {
  take_away_and_reuse("?size=16M&share=segment");
}

// Counts the sockets beside the window. Each device that has one owns it.
size_t sockets(const WindowFile& window) {
  return entries_of("/dev/shm", std::filesystem::path(window.path()).filename().string() + ".");
}

// Works succeed whether they are packets or copies; after some time they are copies.
bool becomes_copies(Side& here, const RemoteSegment& there) {
  const auto bytes = bytes_like(5000, 3);
  const uint64_t before = here.device.stats().value().copied;
  for (const Time begun = read_clock(); since(begun) < patience;) {
    REQUIRE(here.jetty.post(write(bytes, there)) == 1);
    const auto completions = collect(here.jetty, 1);
    if (completions.size() != 1 || !completions[0].ok()) return false;
    if (here.device.stats().value().copied > before) return true;
  }
  return false;
}

TEST_CASE(
    "when an owner that handed over memory is killed, its socket is removed and the next works") {
  const WindowFile window("given");
  const std::string device = window.device("?size=16M&share=segment");
  Side here = Side::open(device);
  for (int round = 0; round < 10; ++round) {
    INFO("round " << round);
    Child owner({URMA_TEST_PEER, device, "serve", "given", "100000"});
    REQUIRE(owner.said() == "ready");
    const Imported there = here.device.import("urma://localhost/given").value();
    REQUIRE(becomes_copies(here, there.segment));
    CHECK(sockets(window) == 2);
    owner.end(SIGKILL);
    // Until the death is noticed, the memory stays mapped, as memory in the window does.
    const auto bytes = bytes_like(5000, 3);
    REQUIRE(here.jetty.post(write(bytes, there.segment)) == 1);
    CHECK(collect(here.jetty, 1).size() == 1);
    CHECK(here.device.allocate(4096).value().mapped());
    CHECK(sockets(window) == 1);
    CHECK_FALSE(run_one(here.jetty, write(bytes, there.segment)).ok());
  }
}

TEST_CASE(
    "when a user of handed-over memory is killed, its owner revokes it, and the next one gets it") {
  const WindowFile window("taker");
  const std::string device = window.device("?size=16M&share=segment");
  Side here = Side::open(device);
  here.device.publish("churned", here.segment).value();
  INFO("URMA_TEST_SEED=" << fresh_seed());
  Prng prng(fresh_seed());
  for (int round = 0; round < 10; ++round) {
    INFO("round " << round);
    const SharedMemory<Churn> shared;
    Churn& churn = *shared;
    Child writer({URMA_TEST_PEER, device, "churn", "urma://localhost/churned", shared.path()});
    REQUIRE(writer.said() == "ready");
    Segment segment = here.device.allocate(segment_bytes).value();
    REQUIRE(segment.mapped());
    tell(churn, segment.local());
    const auto done = [&] { return churn.ended[static_cast<size_t>(Status::ok)].load(); };
    // This must be a copy, not a packet: packets would be counted.
    for (const Time begun = read_clock();;) {
      REQUIRE(since(begun) < patience);
      const uint64_t executed = here.device.stats().value().executed;
      const uint64_t before = done();
      std::this_thread::sleep_for(2ms);
      if (done() > before + 10 && here.device.stats().value().executed == executed) break;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(prng.below(2000)));
    writer.end(SIGKILL);
    CHECK(segment.unregister().ok());
    std::ranges::fill(segment.bytes(), poison);
    CHECK(here.device.quarantined().value().empty());
    CHECK(all_are(segment.bytes(), poison));
    CHECK(here.device.allocate(4096).value().mapped());
    CHECK(sockets(window) == 1);
  }
}

}  // namespace
}  // namespace urma::test
