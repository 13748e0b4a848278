// SPDX-License-Identifier: Apache-2.0
// Data that adapters move by themselves: it arrives, as far as the owner of the memory allows, and
// whatever fails, each work completes once and nothing is written late.

#include <atomic>
#include <cstring>
#include <optional>
#include <thread>

#include "base/clock.h"
#include "base/prng.h"
#include "tests/api/helpers.h"
#include "tests/fresh_seed.h"
#include "tests/verbs/soft_adapters.h"

namespace urma::test {
namespace {

using soft::Failure;

constexpr size_t segment_bytes = 1 << 20;

// Two devices of one adapter, of which one writes to the memory of the other, from a segment.
class Reliable {
 public:
  explicit Reliable(std::string_view options = "&rc=always", const DeviceOptions& device = {}) {
    DeviceOptions served = device;
    served.threads = Threads::served;
    owner_.emplace(Side::open("verbs:soft0?service=5001" + std::string(options), served));
    DeviceOptions inlined = device;
    inlined.threads = Threads::inlined;
    user_.emplace(Side::open("verbs:soft0?service=5002" + std::string(options), inlined));
    there_ = user_->device.import(owner_->line()).value();
  }

  Side& user() { return *user_; }
  Side& owner() { return *owner_; }
  std::span<std::byte> own() const { return user_->segment.bytes(); }
  std::span<std::byte> theirs() const { return owner_->segment.bytes(); }
  RemoteSegment segment() const { return there_.segment; }
  RemoteJetty jetty() const { return there_.jetty; }
  uint64_t carried() { return user_->device.stats().value().carried; }
  Status run(const Work& work) { return run_one(user_->jetty, work).status; }
  // Writes until the adapters do it by themselves. The first works are sent in packets.
  void warm_up() { warm_up(segment()); }
  void warm_up(RemoteSegment to) {
    const Time until = read_clock() + 10s;
    const uint64_t before = carried();
    while (carried() == before) {
      REQUIRE(read_clock() < until);
      REQUIRE(run(write(own().first(64), to)) == Status::ok);
    }
  }
  void close_owner() { owner_.reset(); }

 private:
  std::optional<Side> owner_;
  std::optional<Side> user_;
  Imported there_;
};

TEST_CASE("adapters move the data of writes and reads between segments") {
  const soft::OnlyAdapter adapter;
  {
    Reliable both;
    both.warm_up();
    const uint64_t before = both.carried();
    const auto bytes = bytes_like(300'000);
    std::ranges::copy(bytes, both.own().begin());
    CHECK(both.run(write(both.own().first(bytes.size()), both.segment(), 17)) == Status::ok);
    CHECK(same(both.theirs().subspan(17, bytes.size()), bytes));
    CHECK(both.carried() == before + 5);
    // Another key is needed for this, so the first read is sent in packets.
    const Work back = read(both.own().subspan(400'000, bytes.size()), both.segment(), 17);
    CHECK(both.run(back) == Status::ok);
    CHECK(same(both.own().subspan(400'000, bytes.size()), bytes));
    std::ranges::fill(both.own().subspan(400'000, bytes.size()), std::byte{0});
    CHECK(both.run(back) == Status::ok);
    CHECK(same(both.own().subspan(400'000, bytes.size()), bytes));
    CHECK(both.carried() > before + 5);
    CHECK(soft::reliable_pairs().size() == 2);
  }
  CHECK(soft::objects() == 0);
}

TEST_CASE("a notification arrives after the data that adapters have moved") {
  const soft::OnlyAdapter adapter;
  Reliable both;
  both.warm_up();
  REQUIRE(both.run(read(both.own().first(64), both.segment())) == Status::ok);
  for (uint64_t i = 1; i <= 20; ++i) {
    const uint64_t before = both.carried();
    std::memcpy(both.own().data() + 199'992, &i, sizeof i);
    std::array<std::byte, 8> unused;
    REQUIRE(both.owner().jetty.receive(unused));
    const Work work =
        write(both.own().first(200'000), both.segment()).to(both.jetty()).immediate(i);
    REQUIRE(both.run(work) == Status::ok);
    const auto arrived = collect(both.owner().jetty, 1);
    CHECK(arrived.at(0).immediate == i);
    uint64_t last = 0;
    std::memcpy(&last, both.theirs().data() + 199'992, sizeof last);
    CHECK(last == i);
    CHECK(both.carried() == before + 4);
  }
}

TEST_CASE("memory that is not registered, works with an order and small works go in packets") {
  const soft::OnlyAdapter adapter;
  Reliable both("&rc=auto");
  const auto large = std::span(both.own()).first(64 << 10);
  const Time until = read_clock() + 10s;
  while (both.carried() == 0 && read_clock() < until) {
    REQUIRE(both.run(write(large, both.segment())) == Status::ok);
  }
  const uint64_t before = both.carried();
  REQUIRE(before > 0);
  const auto unregistered = bytes_like(64 << 10);
  CHECK(both.run(write(unregistered, both.segment())) == Status::ok);
  CHECK(same(both.theirs().first(unregistered.size()), unregistered));
  CHECK(both.run(write(large, both.segment()).strong()) == Status::ok);
  CHECK(both.run(write(large.first(1000), both.segment())) == Status::ok);
  CHECK(both.carried() == before);
}

TEST_CASE("a device that never uses RC, and one whose peer does not, send packets") {
  const soft::OnlyAdapter adapter;
  Device owner = open("verbs:soft0?service=5001&rc=never", {.threads = Threads::served}).value();
  const Segment there = owner.allocate(segment_bytes).value();
  Side user = Side::open("verbs:soft0?service=5002&rc=always");
  const RemoteSegment remote = user.device.import(there.descriptor()).value().segment;
  for (int i = 0; i < 50; ++i) {
    CHECK(run_one(user.jetty, write(user.segment.bytes().first(100'000), remote)).ok());
  }
  CHECK(user.device.stats().value().carried == 0);
  CHECK(soft::reliable_pairs().empty());
}

TEST_CASE("the owner refuses what its segment does not allow, however data moves") {
  const soft::OnlyAdapter adapter;
  Reliable both;
  both.warm_up();
  const auto some = both.own().first(4096);
  RemoteSegment wrong = both.segment();
  wrong.token = TokenValue{number(wrong.token) ^ 1};
  CHECK(both.run(write(some, wrong)) == Status::remote_access);
  RemoteSegment longer = both.segment();
  longer.bytes += 4096;
  CHECK(both.run(write(some, longer, segment_bytes - 8)) == Status::remote_access);
  const Segment only_read = both.owner().device.allocate(8192, Rights::read).value();
  const RemoteSegment readable = both.user().device.import(only_read.descriptor()).value().segment;
  CHECK(both.run(write(some, readable)) == Status::remote_access);
  CHECK(both.run(read(some, readable)) == Status::ok);
  both.warm_up();  // the pair has survived
}

TEST_CASE("after unregister and revoke nothing is written, and the works end") {
  const soft::OnlyAdapter adapter;
  Reliable both("&rc=always", {.operation_timeout = 5s});
  Prng prng(fresh_seed());
  for (int round = 0; round < 100; ++round) {
    Segment target = both.owner().device.allocate(256 << 10).value();
    const RemoteSegment remote = both.user().device.import(target.descriptor()).value().segment;
    soft::send_late(0);
    both.warm_up(remote);
    soft::send_late(prng.below(3));
    constexpr size_t works = 8;
    for (size_t i = 0; i < works; ++i) {
      REQUIRE(both.user().jetty.post(write(both.own().first(200'000), remote)) == 1);
    }
    const bool revoked = prng.below(2) == 0;
    std::array<std::byte, 256 << 10> after;
    std::atomic<bool> done = false;
    std::thread owner([&] {
      REQUIRE((revoked ? target.revoke() : target.unregister()).ok());
      std::ranges::copy(target.bytes(), after.begin());
      done = true;
    });
    const auto ended = collect(both.user().jetty, works, 20s);
    owner.join();
    REQUIRE(ended.size() == works);
    for (const Completion& one : ended) {
      CHECK((one.ok() || one.status == Status::remote_access || one.status == Status::unknown));
    }
    std::array<Completion, 1> none;
    for (int i = 0; i < 50; ++i) REQUIRE(both.user().jetty.poll(none) == 0);
    CHECK(same(target.bytes(), after));
  }
}

TEST_CASE("a segment in the same memory as another one is unregistered, and the other one works") {
  const soft::OnlyAdapter adapter;
  Reliable both;
  Segment second = both.user().device.register_memory(both.own()).value();
  both.warm_up();
  REQUIRE(second.unregister().ok());
  both.warm_up();
  const auto bytes = bytes_like(100'000);
  std::ranges::copy(bytes, both.own().begin());
  const uint64_t before = both.carried();
  for (int i = 0; i < 5; ++i) {
    CHECK(both.run(write(both.own().first(bytes.size()), both.segment())) == Status::ok);
  }
  CHECK(same(both.theirs().first(bytes.size()), bytes));
  CHECK(both.carried() == before + 10);
}

TEST_CASE("with a retired token nothing is moved any longer") {
  const soft::OnlyAdapter adapter;
  Reliable both;
  both.warm_up();
  REQUIRE(both.owner().segment.rotate().ok());
  CHECK(both.run(write(both.own().first(4096), both.segment())) == Status::ok);
  REQUIRE(both.owner().segment.retire().ok());
  std::ranges::fill(both.theirs(), std::byte{0});
  std::ranges::fill(both.own(), std::byte{7});
  CHECK(both.run(write(both.own().first(4096), both.segment())) == Status::remote_access);
  CHECK(std::ranges::count(both.theirs(), std::byte{7}) == 0);
  both.warm_up(both.user().device.import(both.owner().segment.descriptor()).value().segment);
}

TEST_CASE("pairs fail a thousand times: each work completes, and all of it arrives") {
  const soft::OnlyAdapter adapter;
  {
    Reliable both("&rc=always", {.operation_timeout = 10s});
    Prng prng(fresh_seed());
    for (int failures = 0; failures < 1000; ++failures) {
      if (failures % 10 == 0) both.warm_up();
      const auto mark = static_cast<std::byte>(failures);
      std::ranges::fill(both.own().first(300'000), mark);
      soft::send_late(prng.below(3));
      REQUIRE(both.user().jetty.post(write(both.own().first(300'000), both.segment())) == 1);
      std::array<Completion, 4> some;
      size_t done = 0;
      for (uint64_t n = prng.below(6); n > 0 && done == 0; --n) done = both.user().jetty.poll(some);
      soft::fail_reliable_pairs("soft0", prng.below(2) == 0 ? Failure::reported : Failure::silent);
      if (done == 0) some[0] = collect(both.user().jetty, 1, 20s).at(0);
      REQUIRE(some[0].ok());
      REQUIRE(std::ranges::count(both.theirs().first(300'000), mark) == 300'000);
    }
    soft::send_late(0);
    both.warm_up();
  }
  CHECK(soft::objects() == 0);
}

TEST_CASE("after a device was closed nothing is written to its memory") {
  const soft::OnlyAdapter adapter;
  {
    Reliable both("&rc=always", {.operation_timeout = 500ms});
    both.warm_up();
    soft::hold_remote_accesses(true);
    std::ranges::fill(both.own(), std::byte{3});
    REQUIRE(both.user().jetty.post(write(both.own().first(100'000), both.segment())) == 1);
    std::array<Completion, 1> none;
    for (int i = 0; i < 10; ++i) CHECK(both.user().jetty.poll(none) == 0);
    both.owner().device.close();
    std::ranges::fill(both.theirs(), std::byte{0});
    soft::hold_remote_accesses(false);
    CHECK(collect(both.user().jetty, 1, 10s).size() == 1);
    CHECK(std::ranges::count(both.theirs(), std::byte{3}) == 0);
    CHECK(both.owner().segment.unregister().status() == Status::closed);
  }
  CHECK(soft::objects() == 0);
}

TEST_CASE("a stale token opens nothing, though the adapter gives its key to other memory") {
  const soft::OnlyAdapter adapter;
  Reliable both;
  std::vector<std::byte> memory(64 << 10);
  for (int round = 0; round < 20; ++round) {
    Segment first = both.owner().device.register_memory(memory).value();
    const RemoteSegment stale = both.user().device.import(first.descriptor()).value().segment;
    both.warm_up(stale);
    REQUIRE(first.unregister().ok());
    std::ranges::fill(memory, std::byte{0});
    std::ranges::fill(both.own(), std::byte{9});
    const Segment second = both.owner().device.register_memory(memory).value();
    CHECK(both.run(write(both.own().first(4096), stale)) == Status::remote_access);
    CHECK(std::ranges::count(memory, std::byte{9}) == 0);
  }
}

TEST_CASE("a token of a device's own memory is retired while adapters move data from there") {
  const soft::OnlyAdapter adapter;
  Reliable both;
  both.warm_up();
  const auto pairs = soft::reliable_pairs();
  for (int round = 0; round < 10; ++round) {
    soft::hold_remote_accesses(true);
    const auto posted = both.own().first(100'000);
    REQUIRE(both.user().jetty.post(write(posted, both.segment())) == 1);
    std::array<Completion, 1> none;
    for (int i = 0; i < 10; ++i) CHECK(both.user().jetty.poll(none) == 0);
    std::thread release([] {
      std::this_thread::sleep_for(5ms);
      soft::hold_remote_accesses(false);
    });
    REQUIRE(both.user().segment.rotate().ok());
    REQUIRE(both.user().segment.retire().ok());
    release.join();
    CHECK(collect(both.user().jetty, 1, 5s).at(0).ok());
    both.warm_up();
  }
  CHECK(soft::reliable_pairs() == pairs);
}

TEST_CASE("a work whose pairs fail again and again is done by packets") {
  const soft::OnlyAdapter adapter;
  Reliable both("&rc=always", {.operation_timeout = 2s});
  both.warm_up();
  soft::hold_remote_accesses(true);
  std::atomic<bool> over = false;
  std::thread failing([&] {
    while (!over) {
      std::this_thread::sleep_for(20ms);
      soft::fail_reliable_pairs("soft0", Failure::reported);
    }
  });
  std::ranges::fill(both.own(), std::byte{5});
  const Time posted = read_clock();
  CHECK(both.run(write(both.own(), both.segment())) == Status::ok);
  CHECK(read_clock() - posted < 5s);
  CHECK(std::ranges::count(both.theirs(), std::byte{5}) == segment_bytes);
  over = true;
  failing.join();
  soft::hold_remote_accesses(false);
}

TEST_CASE("more slices than a pair has room for wait for it, and are not sent in packets") {
  const soft::OnlyAdapter adapter;
  Reliable both;
  both.warm_up();
  std::vector<Jetty> jetties;
  for (int i = 0; i < 8; ++i) jetties.push_back(both.user().device.jetty().value());
  const uint64_t before = both.carried();
  for (Jetty& jetty : jetties) {
    REQUIRE(jetty.post(write(both.own(), both.segment())) == 1);
  }
  for (Jetty& jetty : jetties) CHECK(collect(jetty, 1, 20s).at(0).ok());
  CHECK(both.carried() == before + jetties.size() * segment_bytes / (64 << 10));
}

TEST_CASE("a work that waits for an adapter ends in bounded time, and its memory is free then") {
  const soft::OnlyAdapter adapter;
  Reliable both("&rc=always", {.operation_timeout = 300ms});
  both.warm_up();
  soft::hold_remote_accesses(true);
  std::ranges::fill(both.own(), std::byte{1});
  const Time posted = read_clock();
  CHECK(both.run(write(both.own().first(4096), both.segment())) == Status::unknown);
  CHECK(read_clock() - posted < 2s);
  std::ranges::fill(both.theirs(), std::byte{0});
  soft::hold_remote_accesses(false);
  for (int i = 0; i < 20; ++i) {
    CHECK(both.run(read(both.own().subspan(8192, 8), both.segment(), 8192)) == Status::ok);
  }
  CHECK(std::ranges::count(both.theirs(), std::byte{1}) == 0);
  both.warm_up();
}

TEST_CASE("local memory is unregistered while an adapter holds works that use it") {
  const soft::OnlyAdapter adapter;
  Reliable both("&rc=always");
  both.warm_up();
  Segment source = both.user().device.allocate(8192).value();
  REQUIRE(both.run(write(source.bytes(), both.segment())) == Status::ok);
  soft::hold_remote_accesses(true);
  REQUIRE(both.user().jetty.post(write(source.bytes(), both.segment())) == 1);
  std::array<Completion, 1> none;
  for (int i = 0; i < 10; ++i) CHECK(both.user().jetty.poll(none) == 0);
  REQUIRE(source.unregister().ok());
  const auto ended = collect(both.user().jetty, 1, 5s);
  CHECK(ended.at(0).status == Status::unknown);
  soft::hold_remote_accesses(false);
}

TEST_CASE("a peer that restarts at its address gets another pair") {
  const soft::OnlyAdapter adapter;
  {
    Side user = Side::open("verbs:soft0?service=5002&rc=always");
    for (int lives = 0; lives < 5; ++lives) {
      Device there =
          open("verbs:soft0?service=5001&rc=always", {.threads = Threads::served}).value();
      const Segment memory = there.allocate(8192).value();
      const RemoteSegment remote = user.device.import(memory.descriptor()).value().segment;
      const uint64_t before = user.device.stats().value().carried;
      const Time until = read_clock() + 10s;
      while (user.device.stats().value().carried == before && read_clock() < until) {
        REQUIRE(run_one(user.jetty, write(user.segment.bytes().first(8192), remote)).ok());
      }
      CHECK(user.device.stats().value().carried > before);
    }
  }
  CHECK(soft::objects() == 0);
}

TEST_CASE("a peer that is gone, and an adapter that is removed: works that are carried end") {
  const soft::OnlyAdapter adapter;
  const bool removed = GENERATE(false, true);
  {
    Reliable both("&rc=always", {.operation_timeout = 500ms});
    both.warm_up();
    soft::hold_remote_accesses(true);
    for (int i = 0; i < 5; ++i) {
      REQUIRE(both.user().jetty.post(write(both.own().first(100'000), both.segment())) == 1);
    }
    std::array<Completion, 1> none;
    for (int i = 0; i < 10; ++i) CHECK(both.user().jetty.poll(none) == 0);
    if (removed) {
      soft::remove("soft0");
    } else {
      both.close_owner();
    }
    const auto ended = collect(both.user().jetty, 5, 10s);
    REQUIRE(ended.size() == 5);
    for (const Completion& one : ended) CHECK(one.status == Status::unknown);
    soft::hold_remote_accesses(false);
  }
  CHECK(soft::objects() == 0);
}

}  // namespace
}  // namespace urma::test
