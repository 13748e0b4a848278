// SPDX-License-Identifier: Apache-2.0
// Lanes (Jetty::lane): one thread uses a peer's mapped segment by itself, with the rights, the
// bounds and the revocation of works.

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <optional>
#include <thread>

#include "tests/api/helpers.h"

namespace urma::test {
namespace {

struct Laned : UserAndOwner {
  explicit Laned(const SegmentOptions& options = {.rights = Rights::read | Rights::write |
                                                            Rights::atomic},
                 std::string_view window = "?size=64M")
      : UserAndOwner("cxl:", window),
        segment(owner.device.allocate(1 << 20, options).value()),
        there(import(segment)) {}
  Lane lane() { return user.jetty.lane(there).value(); }

  Segment segment;
  RemoteSegment there;
};

TEST_CASE("a lane writes and reads a segment of each size, and posts no work") {
  Laned pair;
  Lane lane = pair.lane();
  const uint64_t copied = pair.user.device.stats().value().copied;
  for (const size_t bytes : {0, 1, 4, 8, 9, 63, 4096, 65'535, 65'536, 65'537, 1'000'003}) {
    INFO("bytes " << bytes);
    const auto data = bytes_like(bytes, static_cast<unsigned>(bytes));
    REQUIRE(lane.write(data, 40) == Status::ok);
    CHECK(same(pair.segment.bytes().subspan(40, bytes), data));
    std::vector<std::byte> back(bytes);
    REQUIRE(lane.read(back, 40) == Status::ok);
    CHECK(back == data);
  }
  CHECK(pair.user.device.stats().value().copied == copied);
  CHECK(pair.user.jetty.vacant_berths() == 64);
}

TEST_CASE("a lane uses nothing outside of its segment") {
  Laned pair;
  Lane lane = pair.lane();
  const uint64_t all = pair.segment.bytes().size();
  std::vector<std::byte> data(16);
  const auto both = [&](uint64_t offset, size_t bytes) {
    const Status written = lane.write(std::span(data).first(bytes), offset);
    CHECK(lane.read(std::span(data).first(bytes), offset) == written);
    return written;
  };
  CHECK(both(all - 16, 16) == Status::ok);
  CHECK(both(all, 0) == Status::ok);
  CHECK(both(all - 15, 16) == Status::remote_access);
  CHECK(both(all + 1, 0) == Status::remote_access);
  CHECK(both(UINT64_MAX, 1) == Status::remote_access);
  CHECK(both(UINT64_MAX - 7, 16) == Status::remote_access);
  uint64_t previous = 7;
  CHECK(lane.fetch_add(all, 1, previous) == Status::remote_access);
  CHECK(previous == 7);
}

TEST_CASE("a lane has the rights of its segment, and no other ones") {
  std::vector<std::byte> data(8);
  uint64_t previous = 0;
  for (const Rights rights :
       {Rights::read, Rights::write, Rights::atomic, Rights::read | Rights::write}) {
    Laned pair({.rights = rights});
    Lane lane = pair.lane();
    const auto expected = [&](Rights one) {
      return has(rights, one) ? Status::ok : Status::remote_access;
    };
    CHECK(lane.write(data, 0) == expected(Rights::write));
    CHECK(lane.read(data, 0) == expected(Rights::read));
    CHECK(lane.fetch_add(0, 1, previous) == expected(Rights::atomic));
  }
  Laned pair({.rights = Rights::read});
  pair.there.rights = Rights::read | Rights::write;  // not what the owner says
  CHECK(pair.user.jetty.lane(pair.there).status() == Status::remote_access);
}

template <class Word>
void check_atomics() {
  Laned pair;
  Lane lane = pair.lane();
  const auto set = [&](Word value) {
    std::memcpy(&pair.segment.bytes()[24], &value, sizeof value);
  };
  const auto word = [&] {
    Word value;
    std::memcpy(&value, &pair.segment.bytes()[24], sizeof value);
    return value;
  };
  Word previous{};
  set(static_cast<Word>(-1));
  CHECK(lane.fetch_add<Word>(24, 3, previous) == Status::ok);
  CHECK((previous == static_cast<Word>(-1) && word() == 2));
  CHECK(lane.swap<Word>(24, 9, previous) == Status::ok);
  CHECK((previous == 2 && word() == 9));
  CHECK(lane.compare_swap<Word>(24, 8, 5, previous) == Status::ok);
  CHECK((previous == 9 && word() == 9));
  CHECK(lane.compare_swap<Word>(24, 9, 5, previous) == Status::ok);
  CHECK((previous == 9 && word() == 5));
  if (sizeof(Word) == 1) return;
  CHECK(lane.fetch_add<Word>(25, 1, previous) == Status::bad_work);
  CHECK(word() == 5);
}

TEST_CASE("a lane executes atomics of each width") {
  check_atomics<uint8_t>();
  check_atomics<int16_t>();
  check_atomics<uint32_t>();
  check_atomics<int64_t>();
}

TEST_CASE("atomics that the owner's engine executes are not for lanes") {
  Laned pair({.rights = Rights::read | Rights::atomic, .atomics = AtomicDomain::engine});
  Lane lane = pair.lane();
  uint64_t previous = 0;
  CHECK(lane.fetch_add(0, 1, previous) == Status::unsupported);
  std::vector<std::byte> data(8);
  CHECK(lane.read(data, 0) == Status::ok);
}

TEST_CASE("a lane to a segment of its own device works, also where the ranges overlap") {
  Laned pair;
  Lane lane = pair.owner.jetty.lane(pair.segment.local()).value();
  const auto data = bytes_like(1000, 3);
  REQUIRE(lane.write(data, 0) == Status::ok);
  REQUIRE(lane.write(pair.segment.bytes().first(1000), 100) == Status::ok);
  CHECK(same(pair.segment.bytes().subspan(100, 1000), data));
}

TEST_CASE("after unregister a lane is refused, also when its memory is another segment") {
  Laned pair;
  Lane lane = pair.lane();
  const auto data = bytes_like(8, 1);
  REQUIRE(lane.write(data, 0) == Status::ok);
  REQUIRE(pair.segment.unregister().ok());
  const auto refused = [&] {
    std::vector<std::byte> back(8);
    uint64_t previous = 0;
    return lane.write(data, 0) == Status::remote_access &&
           lane.read(back, 0) == Status::remote_access &&
           lane.fetch_add(0, 1, previous) == Status::remote_access;
  };
  CHECK(refused());
  CHECK(pair.user.jetty.lane(pair.there).status() == Status::remote_access);
  { const Segment gone = std::move(pair.segment); }
  const Segment next = pair.owner.device.allocate(1 << 20, Rights::read | Rights::write).value();
  REQUIRE(next.local().address == pair.there.address);
  CHECK(refused());
  CHECK(next.bytes()[0] == std::byte{0});
}

TEST_CASE("a lane with the new token outlives the old one; a lane with the old token ends") {
  Laned pair;
  Lane old = pair.lane();
  const auto data = bytes_like(8, 1);
  pair.there.token = pair.segment.rotate().value();
  Lane fresh = pair.lane();
  CHECK(old.write(data, 0) == Status::ok);
  CHECK(fresh.write(data, 8) == Status::ok);
  REQUIRE(pair.segment.retire().ok());
  CHECK(old.write(data, 0) == Status::remote_access);
  CHECK(fresh.write(data, 8) == Status::ok);
  CHECK(old.write(data, 0) == Status::remote_access);
}

TEST_CASE("a wrong token opens no lane") {
  Laned pair;
  pair.there.token = TokenValue(number(pair.there.token) ^ 1);
  const auto refused = pair.user.jetty.lane(pair.there);
  CHECK(refused.status() == Status::remote_access);
  CHECK(refused.error().message.find("Fix: ") != std::string::npos);
}

TEST_CASE("no store of a lane arrives after unregister has returned") {
  UserAndOwner both("cxl:", "?size=64M");
  std::atomic<bool> ends{false};
  std::optional<RemoteSegment> there;
  std::atomic<uint32_t> offered{0}, taken{0};
  std::atomic<uint64_t> stored{0};
  std::thread user([&] {
    for (uint32_t round = 1; !ends; ++round) {
      while (offered.load() < round && !ends) std::this_thread::yield();
      if (ends) return;
      Result<Lane> lane = both.user.jetty.lane(*there);
      taken = round;
      if (!lane) continue;
      const auto data = bytes_like(round % 3 == 0 ? 100'000 : 64, round | 1);
      Status status = Status::ok;
      while (status == Status::ok) {
        status = lane->write(data, 0);
        stored += status == Status::ok;
      }
      if (status != Status::remote_access && status != Status::unknown) std::abort();
    }
  });
  for (uint32_t round = 1; round <= 300; ++round) {
    Segment segment = both.owner.device.allocate(1 << 17, Rights::write).value();
    there = both.import(segment);
    offered = round;
    while (taken.load() < round) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::microseconds(round % 7 * 30));
    REQUIRE(segment.unregister().ok());
    std::memset(segment.bytes().data(), 0, segment.bytes().size());
    std::this_thread::sleep_for(std::chrono::microseconds(round % 5 * 20));
    for (const std::byte one : segment.bytes()) {
      if (one != std::byte{0}) FAIL("a late store in round " << round);
    }
  }
  ends = true;
  user.join();
  CHECK(stored > 0);
}

// The words of the window say what a thread that was stopped in the middle of a copy has said.
TEST_CASE("memory that a stopped thread holds by a lane is moved, and not given to others") {
  Laned pair;
  Lane lane = pair.lane();
  const auto data = bytes_like(8, 1);
  REQUIRE(lane.write(data, 0) == Status::ok);
  Intruder stopped(pair.medium.window());
  auto& hold = stopped.lane_hold(0, 0).segment;
  hold = static_cast<uint32_t>((pair.there.address & ~drivers::cxl::in_the_window) >>
                               drivers::cxl::offset_bits) +
         1;
  std::vector<Quarantined> none = pair.owner.device.quarantined().value();
  CHECK(none.empty());
  CHECK(pair.segment.unregister().ok());
  const std::vector<Quarantined> held = pair.owner.device.quarantined().value();
  REQUIRE(held.size() == 1);
  CHECK(held[0].address == pair.there.address);
  CHECK(held[0].held_by == pair.user.device.endpoint());
  { const Segment gone = std::move(pair.segment); }
  const Segment next = pair.owner.device.allocate(1 << 20, Rights::write).value();
  CHECK(next.local().address != pair.there.address);
  hold = 0;
  CHECK(pair.owner.device.quarantined().value().empty());
}

// If another lane got the hold, a store of the refused one would hide that the other one is in the
// middle of a copy.
TEST_CASE("a lane that was refused keeps its hold until it is destroyed") {
  Laned pair;
  std::vector<Lane> refused;
  refused.push_back(pair.lane());
  const auto data = bytes_like(8, 1);
  REQUIRE(pair.segment.unregister().ok());
  REQUIRE(refused[0].write(data, 0) == Status::remote_access);
  const Segment next = pair.owner.device.allocate(4096, Rights::write).value();
  const RemoteSegment there = pair.import(next);
  std::vector<Lane> others;
  for (uint32_t i = 1; i < max_lanes; ++i) others.push_back(pair.user.jetty.lane(there).value());
  CHECK(pair.user.jetty.lane(there).status() == Status::no_resources);
  Intruder copying(pair.medium.window());
  for (uint32_t i = 1; i < max_lanes; ++i) copying.lane_hold(0, i).segment = 1000;
  CHECK(refused[0].write(data, 0) == Status::remote_access);
  for (uint32_t i = 1; i < max_lanes; ++i) CHECK(copying.lane_hold(0, i).segment == 1000);
  refused.clear();
  CHECK(pair.user.jetty.lane(there).ok());
}

TEST_CASE("a lane treats a span of null memory as empty") {
  Laned pair;
  Lane lane = pair.lane();
  CHECK(lane.write(std::span(static_cast<const std::byte*>(nullptr), 8), 0) == Status::ok);
  CHECK(lane.read(std::span(static_cast<std::byte*>(nullptr), 8), 0) == Status::ok);
}

TEST_CASE("a device has max_lanes lanes at a time") {
  Laned pair;
  std::vector<Lane> lanes;
  for (uint32_t i = 0; i < max_lanes; ++i) lanes.push_back(pair.lane());
  const auto refused = pair.user.jetty.lane(pair.there);
  CHECK(refused.status() == Status::no_resources);
  CHECK(refused.error().message.find("8 lanes") != std::string::npos);
  lanes.erase(lanes.begin() + 3);
  lanes.push_back(pair.lane());
  const auto data = bytes_like(8, 1);
  for (size_t i = 0; i < lanes.size(); ++i) {
    INFO(i);
    CHECK(lanes[i].write(data, 8 * i) == Status::ok);
  }
}

TEST_CASE("only the thread that made a lane uses it, and any thread destroys it") {
  Laned pair;
  std::optional<Lane> lane = pair.lane();
  std::vector<std::byte> data(8);
  std::thread([&] {
    CHECK(lane->write(data, 0) == Status::invalid_argument);
    CHECK(lane->read(data, 0) == Status::invalid_argument);
    lane.reset();
  }).join();
  std::vector<Lane> lanes;
  for (uint32_t i = 0; i < max_lanes; ++i) lanes.push_back(pair.lane());
}

TEST_CASE("a lane says that its device is closed, that it was moved from, or outlives its Jetty") {
  Laned pair;
  std::vector<std::byte> data(8);
  Lane first = pair.lane();
  Lane second(std::move(first));
  CHECK(first.write(data, 0) == Status::closed);  // NOLINT: what a lane that was moved from does
  {
    Jetty other = pair.user.device.jetty().value();
    first = other.lane(pair.there).value();
  }
  CHECK(first.write(data, 0) == Status::ok);
  pair.user.device.close();
  CHECK(first.write(data, 0) == Status::closed);
  CHECK(second.read(data, 0) == Status::closed);
  CHECK(pair.user.jetty.lane(pair.there).status() == Status::closed);
}

TEST_CASE("a lane of the parent does nothing in a child of fork") {
  Laned pair;
  std::optional<Lane> lane = pair.lane();
  const pid_t child = fork();
  if (child == 0) {
    std::vector<std::byte> data(8);
    const bool refused = lane->write(data, 0) == Status::forked &&
                         pair.user.jetty.lane(pair.there).status() == Status::forked;
    lane.reset();
    _exit(refused ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
  const auto data = bytes_like(8, 1);
  CHECK(lane->write(data, 0) == Status::ok);
}

TEST_CASE("a lane ends with the process of its owner") {
  Laned pair;
  Lane lane = pair.lane();
  std::vector<std::byte> data(8);
  pair.owner.device.close();
  CHECK(lane.write(data, 0) != Status::ok);
  const Time until = Time(std::chrono::steady_clock::now().time_since_epoch()) + patience;
  Status status{};
  do {
    status = lane.write(data, 0);
  } while (status == Status::remote_access &&
           Time(std::chrono::steady_clock::now().time_since_epoch()) < until);
  CHECK(status == Status::peer_restarted);
}

// The record of the segment stays open, so only the owner's slot shows that it has died.
TEST_CASE("a lane ends if the process of its owner is killed") {
  const WindowFile window("lane-killed");
  int line[2];
  REQUIRE(pipe(line) == 0);
  const pid_t owner = fork();
  if (owner == 0) {
    Device device = open(window.device("?size=64M")).value();
    const Segment segment = device.allocate(4096, Rights::write).value();
    const std::string text = segment.descriptor();
    if (::write(line[1], text.data(), text.size()) < 0) _exit(1);
    pause();
    _exit(0);
  }
  std::array<char, 1024> text;
  const ssize_t bytes = ::read(line[0], text.data(), text.size());
  REQUIRE(bytes > 0);
  Side user = Side::open(window.device(""));
  const std::string_view descriptor(text.data(), static_cast<size_t>(bytes));
  Lane lane = user.jetty.lane(user.device.import(descriptor).value().segment).value();
  const auto data = bytes_like(8, 1);
  REQUIRE(lane.write(data, 0) == Status::ok);
  kill(owner, SIGKILL);
  REQUIRE(waitpid(owner, nullptr, 0) == owner);
  Status status = Status::ok;
  for (int i = 0; i < 2000 && status == Status::ok; ++i) {
    std::this_thread::sleep_for(5ms);
    status = lane.write(data, 0);
  }
  CHECK(status == Status::peer_restarted);
  close(line[0]);
  close(line[1]);
}

TEST_CASE("memory that is not mapped has no lanes") {
  Laned pair;
  std::vector<std::byte> memory(4096);
  const Segment own = pair.owner.device.register_memory(memory).value();
  const auto refused = pair.user.jetty.lane(pair.import(own));
  CHECK(refused.status() == Status::unsupported);
  CHECK(refused.error().message.find("Fix: ") != std::string::npos);
  CHECK(pair.user.jetty.lane({}).status() == Status::invalid_argument);
  Laned handed({.rights = Rights::write}, "?size=64M&share=segment");
  CHECK(handed.user.jetty.lane(handed.there).status() == Status::unsupported);
}

}  // namespace
}  // namespace urma::test
