// SPDX-License-Identifier: Apache-2.0
// Works whose data devices move by themselves (rdma=), when pairs fail, peers die and memory is
// taken back while transfers are in the network. What a device sent for a work that has ended, or
// began again, must not arrive later, unless the work ended unknown.

#include <algorithm>
#include <cstring>
#include <map>

#include "base/prng.h"
#include "tests/completions.h"
#include "tests/fresh_seed.h"
#include "tests/sanitized.h"
#include "tests/sim/pair.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;

constexpr std::byte poison{0xee};

void fill(std::span<std::byte> bytes, std::byte value) { std::ranges::fill(bytes, value); }

// Two hosts, of which the first one's device moves data to and from the memory of the other.
struct Carrying : SimPair {
  explicit Carrying(const std::string& name, uint64_t seed = 1, HostOptions first = {},
                    HostOptions second = {})
      : SimPair(name + "-" + std::to_string(seed), with_rdma(first), with_rdma(second), seed) {}
  ~Carrying() { hosts.network().faults = {}; }
  Carrying(const Carrying&) = delete;
  Carrying& operator=(const Carrying&) = delete;

  static HostOptions with_rdma(HostOptions options) {
    options.network += options.network.empty() ? "rdma=yes" : "&rdma=yes";
    return options;
  }
  drivers::sim::Faults::OfPairs& faults() { return hosts.network().faults.pairs; }
  const drivers::sim::Network::Counters& counters() { return hosts.network().counters(); }
  uint64_t carried() { return here.device.stats().value().carried; }
  std::span<std::byte> own() { return here.memory; }
  std::span<std::byte> theirs() { return there.memory; }

  // Works until devices move the data. The first works are sent in packets.
  void warm_up(const RemoteSegment& to, bool reads = false) {
    const Time until = hosts.now() + 60s;
    const uint64_t before = carried();
    while (carried() == before) {
      REQUIRE(hosts.now() < until);
      const auto some = own().last(64);
      (void)status_of(here.jetty, reads ? read(some, to) : write(some, to), 20s);
      hosts.run_for(1ms);
    }
  }
  void warm_up() { warm_up(target.segment); }
  // Lets the next transfers fail or be late, at random.
  void make_trouble(Duration late_up_to = 20ms) {
    faults() = {.failed = 0.1, .late = 0.3, .late_up_to = late_up_to};
  }
};

TEST_CASE("devices move the data of writes and reads, and notifications come behind it") {
  Carrying both("carried");
  both.warm_up();
  both.warm_up(both.target.segment, true);
  const auto bytes = bytes_like(300'000);
  std::ranges::copy(bytes, both.own().begin());
  const uint64_t before = both.carried();
  CHECK(status_of(both.here.jetty,
                  write(both.own().first(bytes.size()), both.target.segment, 17)) == Status::ok);
  CHECK(same(both.theirs().subspan(17, bytes.size()), bytes));
  const auto back = both.own().subspan(400'000, bytes.size());
  CHECK(status_of(both.here.jetty, read(back, both.target.segment, 17)) == Status::ok);
  CHECK(same(back, bytes));
  CHECK(both.carried() == before + 10);

  both.faults() = {.late = 0.5, .late_up_to = 20ms};
  for (uint64_t i = 1; i <= 20; ++i) {
    fill(both.own().first(200'000), static_cast<std::byte>(i));
    REQUIRE(both.here.jetty.post(write(both.own().first(200'000), both.target.segment)
                                     .to(both.target.jetty)
                                     .immediate(i)) == 1);
    const auto arrived = both.there.jetty.wait(1s);
    REQUIRE(arrived.size() == 1);
    CHECK(arrived[0].immediate == i);
    CHECK(all_are(both.theirs().first(200'000), static_cast<std::byte>(i)));
    CHECK(only_status(both.here.jetty, 1s) == Status::ok);
  }
}

TEST_CASE("devices without rdma, and peers of which one has none, send packets") {
  const bool first = GENERATE(false, true);
  SimPair both(first ? "carried-first" : "carried-second",
               {.network = first ? "rdma=yes" : "rdma=no"},
               {.network = first ? "rdma=no" : "rdma=yes"});
  const auto some = std::span(both.here.memory).first(50'000);
  for (int i = 0; i < 50; ++i) {
    REQUIRE(status_of(both.here.jetty, write(some, both.target.segment)) == Status::ok);
    both.hosts.run_for(10ms);
  }
  CHECK(both.hosts.network().counters().accesses == 0);
}

// Each write is followed by another one to the same range as soon as it has completed. A transfer
// that arrived after that would change the range back.
void write_again_and_again(Carrying& both, Prng& prng, std::map<Status, uint64_t>& ended) {
  constexpr size_t bytes = 150'000;
  for (int round = 0; round < 60; ++round) {
    const auto mark = static_cast<std::byte>(round + 1);
    const uint64_t from = prng.below(1000);
    const auto source = both.own().first(bytes);
    fill(source, mark);
    const Status status = status_of(both.here.jetty, write(source, both.target.segment, from), 20s);
    ++ended[status];
    if (status != Status::ok) return;  // what is unknown may be executed later
    fill(source, poison);              // the memory belongs to the application again
    REQUIRE(all_are(both.theirs().subspan(from, bytes), mark));
    if (prng.chance(0.5)) {
      both.hosts.run_for(Duration(static_cast<int64_t>(prng.below(50'000'000))));
      REQUIRE(all_are(both.theirs().subspan(from, bytes), mark));
    }
  }
  both.hosts.run_for(1s);
  REQUIRE(std::ranges::count(both.theirs(), poison) == 0);
}

TEST_CASE("pairs fail with transfers in the network: nothing arrives after its work has ended") {
  const auto [loss, seeds] =
      GENERATE(std::pair("loss=0%", uint64_t{20}), std::pair("loss=30%", uint64_t{20}));
  std::map<Status, uint64_t> ended;
  uint64_t strays = 0;
  uint64_t failed = 0;
  uint64_t carried = 0;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    INFO("seed " << seed << ", " << loss);
    Carrying both(std::string("carried-fails-") + loss, seed, {.network = loss}, {.network = loss});
    both.warm_up();
    both.make_trouble(seed % 2 == 0 ? 20ms : 300us);
    Prng prng(seed);
    write_again_and_again(both, prng, ended);
    strays += both.counters().strays;
    failed += both.counters().failed_pairs;
    carried += both.carried();
  }
  CHECK(ended[Status::ok] > 50 * seeds);
  CHECK(failed > seeds);
  CHECK(strays > 0);
  CHECK(carried > 50 * seeds);
}

TEST_CASE("reads begin again when their pair fails, and are whole") {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    INFO("seed " << seed);
    Carrying both("carried-reads", seed);
    both.warm_up(both.target.segment, true);
    both.make_trouble();
    const auto bytes = bytes_like(200'000, static_cast<unsigned>(seed));
    std::ranges::copy(bytes, both.theirs().begin());
    for (int round = 0; round < 30; ++round) {
      const auto into = both.own().first(bytes.size());
      fill(into, std::byte{0});
      REQUIRE(status_of(both.here.jetty, read(into, both.target.segment), 20s) == Status::ok);
      REQUIRE(same(into, bytes));
      fill(into, poison);
      both.hosts.run_for(2ms);
      REQUIRE(all_are(into, poison));  // no answer of a device comes later
    }
  }
}

// Posts writes and reads of a segment, and takes the segment back meanwhile.
void take_back(Carrying& both, Prng& prng, uint64_t seed) {
  std::vector<std::byte> memory(300'000, std::byte{1});
  Segment segment = both.there.device.register_memory(memory).value();
  const RemoteSegment remote = both.here.device.import(segment.descriptor()).value().segment;
  both.faults() = {};
  both.warm_up(remote);
  both.warm_up(remote, true);
  fill(both.own(), std::byte{2});
  if (seed % 2 == 0) both.make_trouble(5ms);
  both.faults().late = 0.5;
  both.faults().late_up_to = 2ms;
  for (size_t i = 0; i < 8; ++i) {
    const auto part = both.own().subspan(i * 100'000, 100'000);
    const Work work = i % 3 == 0 ? read(part, remote, 150'000) : write(part, remote, i * 10'000);
    REQUIRE(both.here.jetty.post(work) == 1);
  }
  both.hosts.run_for(Duration(static_cast<int64_t>(prng.below(3'000'000))));
  const uint64_t how = seed % 3;
  if (how == 0) REQUIRE(segment.unregister().ok());
  if (how == 1) REQUIRE(segment.revoke().ok());
  if (how == 2) {
    REQUIRE(segment.rotate().ok());
    REQUIRE(segment.retire().ok());
  }
  fill(memory, poison);
  const auto ended = collect(both.here.jetty, 8);
  REQUIRE(ended.size() == 8);
  for (const Completion& one : ended) {
    CHECK((one.ok() || one.status == Status::remote_access || one.status == Status::unknown));
  }
  both.hosts.run_for(50ms);
  CHECK(all_are(memory, poison));
  CHECK(std::ranges::count(both.own(), poison) == 0);
}

TEST_CASE("after unregister, revoke or retire no device accesses the memory, and works end") {
  Prng prng(1);
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    INFO("seed " << seed);
    Carrying both("carried-taken", seed);
    take_back(both, prng, seed);
    both.faults() = {};
    both.warm_up();  // the pair is replaced
  }
}

TEST_CASE("after a device was closed no device accesses its memory") {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    INFO("seed " << seed);
    Carrying both("carried-after-close", seed);
    both.warm_up();
    both.faults().stuck = true;
    fill(both.own(), std::byte{2});
    for (size_t i = 0; i < 4; ++i) {
      REQUIRE(both.here.jetty.post(write(both.own().first(100'000), both.target.segment)) == 1);
    }
    both.hosts.run_for(100us);
    both.there.device.close();
    fill(both.theirs(), poison);
    both.faults() = {};
    CHECK(collect(both.here.jetty, 4).size() == 4);
    both.hosts.run_for(50ms);
    CHECK(all_are(both.theirs(), poison));
  }
}

TEST_CASE("with a retired token nothing is moved, with the new one it is") {
  Carrying both("carried-retired");
  both.warm_up();
  REQUIRE(both.there.segment.rotate().ok());
  CHECK(status_of(both.here.jetty, write(both.own().first(4096), both.target.segment)) ==
        Status::ok);
  REQUIRE(both.there.segment.retire().ok());
  fill(both.theirs(), std::byte{0});
  fill(both.own(), std::byte{7});
  CHECK(status_of(both.here.jetty, write(both.own().first(4096), both.target.segment)) ==
        Status::remote_access);
  both.hosts.run_for(50ms);
  CHECK(std::ranges::count(both.theirs(), std::byte{7}) == 0);
  both.warm_up(both.here.device.import(both.there.segment.descriptor()).value().segment);
}

TEST_CASE("the owner refuses what its segment does not allow, though the device has its keys") {
  Carrying both("carried-refused");
  both.warm_up();
  both.warm_up(both.target.segment, true);
  fill(both.own(), std::byte{7});
  const auto some = both.own().first(4096);
  RemoteSegment wrong = both.target.segment;
  wrong.token = TokenValue{number(wrong.token) ^ 1};
  CHECK(status_of(both.here.jetty, write(some, wrong)) == Status::remote_access);
  CHECK(status_of(both.here.jetty, read(some, wrong)) == Status::remote_access);
  RemoteSegment other = both.target.segment;
  other.token_id = TokenId{number(other.token_id) + 1};
  CHECK(status_of(both.here.jetty, write(some, other)) == Status::remote_access);
  RemoteSegment longer = both.target.segment;
  longer.bytes += 4096;
  CHECK(status_of(both.here.jetty, write(some, longer, (1 << 20) - 8)) == Status::remote_access);
  CHECK(std::ranges::count(both.theirs().first((1 << 20) - 8), std::byte{7}) == 0);
  // The key of another segment is asked for with each right.
  std::vector<std::byte> memory(8192);
  const Segment only_read =
      both.there.device.register_memory(memory, {.rights = Rights::read}).value();
  const RemoteSegment readable = both.here.device.import(only_read.descriptor()).value().segment;
  both.warm_up(readable, true);
  RemoteSegment writable = readable;
  writable.rights = Rights::read | Rights::write;
  CHECK(status_of(both.here.jetty, write(some, writable)) == Status::remote_access);
  const uint64_t before = both.carried();
  CHECK(status_of(both.here.jetty, read(some, readable)) == Status::ok);
  CHECK(both.carried() == before + 1);  // the pair has survived
}

TEST_CASE("a segment does not open what another segment in the same memory does") {
  const size_t offset = GENERATE(0, 100'000);
  Carrying both("carried-overlapping", offset);
  both.warm_up(both.target.segment, true);
  // Part of the memory, which may only be read.
  const auto part = both.theirs().subspan(offset, 50'000);
  const Segment narrow = both.there.device.register_memory(part, {.rights = Rights::read}).value();
  RemoteSegment remote = both.here.device.import(narrow.descriptor()).value().segment;
  const auto some = both.own().first(1000);
  for (int i = 0; i < 20; ++i) {
    REQUIRE(status_of(both.here.jetty, read(some, remote, 500)) == Status::ok);
    both.hosts.run_for(20ms);
  }
  remote.bytes += 100'000;
  CHECK(status_of(both.here.jetty, read(some, remote, 60'000)) == Status::remote_access);
  CHECK(status_of(both.here.jetty, read(some, remote, 49'500)) == Status::remote_access);
  CHECK(status_of(both.here.jetty, write(some, remote, 500)) == Status::remote_access);
}

TEST_CASE("of two segments in the same memory one ends, and its keys with it") {
  const bool first = GENERATE(false, true);
  Carrying both("carried-same-memory", first);
  Segment second = both.there.device.register_memory(both.theirs()).value();
  const RemoteSegment remote = both.here.device.import(second.descriptor()).value().segment;
  both.warm_up();
  both.warm_up(remote);
  REQUIRE((first ? both.there.segment : second).unregister().ok());
  const auto some = both.own().first(4096);
  CHECK(status_of(both.here.jetty, write(some, first ? both.target.segment : remote)) ==
        Status::remote_access);
  both.warm_up(first ? remote : both.target.segment);
}

TEST_CASE("a peer is killed under traffic and starts again: works end, and it gets another pair") {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    INFO("seed " << seed);
    Carrying both("carried-killed", seed, {}, {.network = "address=fd00::9"});
    Prng prng(seed);
    both.warm_up();
    both.faults() = {.failed = seed % 2 == 0 ? 0.1 : 0, .late = 0.7, .late_up_to = 20ms};
    for (size_t i = 0; i < 10; ++i) {
      const auto part = both.own().subspan(i * 100'000, 100'000);
      const Work work = i % 2 == 0 ? read(part, both.target.segment)
                                   : write(part, both.target.segment, i * 10'000);
      REQUIRE(both.here.jetty.post(work) == 1);
    }
    both.hosts.run_for(Duration(static_cast<int64_t>(prng.below(1'000'000))));
    both.hosts.kill(std::move(both.there));
    both.there = both.hosts.start("address=fd00::9&rdma=yes");
    const Time begun = both.hosts.now();
    // By this packet the host learns that the peer has restarted, perhaps before the pair fails.
    both.faults().stuck = seed % 3 == 0;
    REQUIRE(both.here.jetty.post(write(both.own().first(8), both.target.segment).strong()) == 1);
    const auto ended = collect(both.here.jetty, 11);
    REQUIRE(ended.size() == 11);
    CHECK(both.hosts.now() - begun < 1s);  // before the works time out
    for (const Completion& one : ended) {
      CHECK((one.ok() || one.status == Status::unknown || one.status == Status::peer_restarted ||
             one.status == Status::peer_unreachable));
    }
    CHECK(all_are(both.there.memory, std::byte{0}));
    both.faults() = {};
    both.warm_up(both.here.device.import(both.there.line).value().segment);
  }
}

TEST_CASE("a peer closes its device while transfers are stuck: works end soon") {
  Carrying both("carried-closed");
  both.warm_up();
  both.faults() = {.stuck = true};
  for (size_t i = 0; i < 10; ++i) {
    REQUIRE(both.here.jetty.post(write(both.own().first(100'000), both.target.segment)) == 1);
  }
  both.hosts.run_for(100us);
  both.there.device.close();
  const Time begun = both.hosts.now();
  const auto ended = collect(both.here.jetty, 10);
  REQUIRE(ended.size() == 10);
  // The device ends its pairs before it leaves, and refuses what is sent again in packets.
  for (const Completion& one : ended) CHECK(one.status == Status::remote_access);
  CHECK(both.hosts.now() - begun < 100ms);
}

TEST_CASE("a process is killed whose device is writing: peers end its pair") {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    INFO("seed " << seed);
    Carrying both("carried-writer", seed, {.network = "address=fd00::9"});
    Prng prng(seed);
    both.warm_up();
    both.faults() = {.late = 0.5, .late_up_to = 20ms};
    for (int i = 0; i < 10; ++i) {
      REQUIRE(both.here.jetty.post(write(both.own().first(100'000), both.target.segment)) == 1);
    }
    both.hosts.run_for(Duration(static_cast<int64_t>(prng.below(1'000'000))));
    both.hosts.kill(std::move(both.here));
    both.here = both.hosts.start("address=fd00::9&rdma=yes");
    both.target = both.here.device.import(both.there.line).value();
    both.faults() = {};
    both.warm_up();
    // The peer has the pair of the new process, so it has none of the killed one.
    fill(both.theirs(), poison);
    both.hosts.run_for(100ms);
    CHECK(all_are(both.theirs(), poison));
  }
}

TEST_CASE("peers that have ended leave no pairs behind") {
  constexpr int more_than_a_device_has = 70;
  const bool writer = GENERATE(false, true);
  const HostOptions restarts{.network = "address=fd00::9"};
  Carrying both("carried-lives", writer, writer ? restarts : HostOptions{},
                writer ? HostOptions{} : restarts);
  for (int lives = 0; lives < more_than_a_device_has; ++lives) {
    INFO("life " << lives);
    both.warm_up();
    SimHosts::Host& one = writer ? both.here : both.there;
    both.hosts.kill(std::move(one));
    one = both.hosts.start("address=fd00::9&rdma=yes");
    both.target = both.here.device.import(both.there.line).value();
  }
}

TEST_CASE("messages about pairs are lost or not answered: works end, and pairs are made later") {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    INFO("seed " << seed);
    Carrying both("carried-cut", seed);
    both.warm_up();
    both.make_trouble();
    const Endpoint from = both.here.device.endpoint();
    const Endpoint to = both.there.device.endpoint();
    Prng prng(seed);
    for (int round = 0; round < 20; ++round) {
      const auto mark = static_cast<std::byte>(round + 1);
      fill(both.own().first(150'000), mark);
      REQUIRE(both.here.jetty.post(write(both.own().first(150'000), both.target.segment)) == 1);
      both.hosts.run_for(Duration(static_cast<int64_t>(prng.below(500'000))));
      const bool forth = prng.chance(0.5);
      both.hosts.network().faults.cut(forth ? from : to, forth ? to : from, true);
      both.hosts.run_for(Duration(static_cast<int64_t>(prng.below(300'000'000))));
      both.hosts.network().faults.cut(forth ? from : to, forth ? to : from, false);
      const Status status = only_status(both.here.jetty, 10s);
      CHECK(status == Status::ok);
      if (status == Status::ok) CHECK(all_are(both.theirs().first(150'000), mark));
    }
    both.faults() = {};
    both.warm_up();
  }
}

TEST_CASE("channels end during long cuts: no work says that it was not executed if it was") {
  std::map<Status, uint64_t> ended;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    INFO("seed " << seed);
    const DeviceOptions device{.operation_timeout = 20s};
    Carrying both("carried-long-cut", seed, {.device = device}, {.device = device});
    const Endpoint from = both.here.device.endpoint();
    const Endpoint to = both.there.device.endpoint();
    Prng prng(seed);
    for (int round = 0; round < 10; ++round) {
      both.faults() = {};
      both.warm_up();
      both.make_trouble();
      fill(both.theirs(), poison);
      const auto mark = static_cast<std::byte>(round + 1);
      fill(both.own().first(150'000), mark);
      REQUIRE(both.here.jetty.post(write(both.own().first(150'000), both.target.segment)) == 1);
      both.hosts.run_for(Duration(static_cast<int64_t>(prng.below(100'000))));
      const uint64_t ways = prng.between(1, 3);
      if ((ways & 1) != 0) both.hosts.network().faults.cut(from, to, true);
      if ((ways & 2) != 0) both.hosts.network().faults.cut(to, from, true);
      both.hosts.run_for(Duration(static_cast<int64_t>(prng.below(8'000'000'000))));
      both.hosts.network().faults.cut(from, to, false);
      both.hosts.network().faults.cut(to, from, false);
      const Status status = only_status(both.here.jetty, 30s);
      ++ended[status];
      if (status == Status::unknown) continue;
      both.hosts.run_for(50ms);
      const bool executed = std::ranges::count(both.theirs(), mark) > 0;
      CHECK(executed == (status == Status::ok));
    }
  }
  CHECK(ended[Status::ok] > 20);
}

TEST_CASE("works whose transfers are stuck end unknown, soon after their time-out") {
  const Duration timeout = 50ms;
  Carrying both("carried-stuck", 1, {.device = {.operation_timeout = timeout}});
  both.warm_up();
  for (int round = 0; round < 20; ++round) {
    INFO("round " << round);
    both.faults() = {.stuck = true};
    fill(both.own(), std::byte{1});
    const Time posted = both.hosts.now();
    REQUIRE(both.here.jetty.post(write(both.own().first(100'000), both.target.segment)) == 1);
    CHECK(only_status(both.here.jetty, 1s) == Status::unknown);
    CHECK(both.hosts.now() - posted >= timeout);
    CHECK(both.hosts.now() - posted <= timeout + 10ms);
    // The work may still be executed, but not for long.
    both.hosts.run_for(5ms);
    fill(both.theirs(), poison);
    both.faults() = {};
    both.hosts.run_for(50ms);
    CHECK(all_are(both.theirs(), poison));
    both.warm_up();
  }
}

TEST_CASE("a flush, a reset and a close end works whose transfers are stuck") {
  Carrying both("carried-flushed");
  both.warm_up();
  for (int round = 0; round < 10; ++round) {
    both.faults() = {.stuck = true};
    for (int i = 0; i < 5; ++i) {
      REQUIRE(both.here.jetty.post(write(both.own().first(100'000), both.target.segment)) == 1);
    }
    both.hosts.run_for(100us);
    const Time begun = both.hosts.now();
    REQUIRE(both.here.jetty.flush().ok());
    CHECK(both.hosts.now() - begun <= 10ms);
    const auto ended = collect(both.here.jetty, 5);
    REQUIRE(ended.size() == 5);
    for (const Completion& one : ended) CHECK(one.status == Status::unknown);
    REQUIRE(both.here.jetty.reset().ok());
    both.faults() = {};
    both.warm_up();
  }
  both.faults() = {.stuck = true};
  REQUIRE(both.here.jetty.post(write(both.own().first(100'000), both.target.segment)) == 1);
  both.hosts.run_for(100us);
  both.here.device.close();
}

TEST_CASE("local memory is unregistered while transfers use it, which do not access it later") {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    INFO("seed " << seed);
    Carrying both("carried-local", seed);
    Prng prng(seed);
    both.warm_up(both.target.segment, seed % 2 == 0);
    fill(both.theirs(), std::byte{3});
    std::vector<std::byte> memory(100'000, std::byte{2});
    Segment source = both.here.device.register_memory(memory).value();
    both.faults() = {.late = 0.7, .late_up_to = 20ms, .stuck = seed % 4 < 2};
    for (size_t i = 0; i < 4; ++i) {
      const auto part = std::span(memory).subspan(i * 25'000, 25'000);
      REQUIRE(both.here.jetty.post(seed % 2 == 0 ? read(part, both.target.segment)
                                                 : write(part, both.target.segment)) == 1);
    }
    both.hosts.run_for(Duration(static_cast<int64_t>(prng.below(100'000))));
    const Time begun = both.hosts.now();
    REQUIRE(source.unregister().ok());
    CHECK(both.hosts.now() - begun <= 10ms);
    fill(memory, poison);
    both.faults() = {};
    const auto ended = collect(both.here.jetty, 4);
    REQUIRE(ended.size() == 4);
    for (const Completion& one : ended) {
      CHECK((one.ok() || one.status == Status::unknown || one.status == Status::flushed));
    }
    both.hosts.run_for(50ms);
    CHECK(all_are(memory, poison));
    CHECK(std::ranges::count(both.theirs(), poison) == 0);
  }
}

TEST_CASE("a suspended Jetty reports no work as done whose transfer has failed") {
  uint64_t done = 0;
  uint64_t others = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    INFO("seed " << seed);
    Carrying both("carried-suspended", seed,
                  {.jetty = {.berths = 64, .receives = 16, .suspend_on_error = true}});
    both.warm_up();
    RemoteSegment longer = both.target.segment;
    longer.bytes += 1 << 20;
    fill(both.theirs(), std::byte{0});
    fill(both.own(), std::byte{1});
    both.faults() = {.failed = 0.3, .late = 0.5, .late_up_to = 2ms};
    // The first slice of this work is moved by the device, the second one is refused.
    const auto source = both.own().first(100'000);
    REQUIRE(both.here.jetty.post(write(source, longer, (1 << 20) - (64 << 10))) == 1);
    for (size_t i = 0; i < 5; ++i) {
      REQUIRE(both.here.jetty.post(
                  write(source.first(50'000), both.target.segment, i * 50'000).tag(1 + i)) == 1);
    }
    const auto ended = collect(both.here.jetty, 6);
    REQUIRE(ended.size() == 6);
    for (const Completion& one : ended) {
      ++(one.ok() ? done : others);
      if (one.tag == 0) CHECK_FALSE(one.ok());
      if (one.tag == 0 || !one.ok()) continue;
      CHECK(all_are(both.theirs().subspan((one.tag - 1) * 50'000, 50'000), std::byte{1}));
    }
  }
  CHECK(done > 0);
  CHECK(others > 100);
}

TEST_CASE("channels that are idle close although devices move data, and no work is lost") {
  const DeviceOptions device{.idle_timeout = 2ms};
  Carrying both("carried-idle", 1, {.device = device}, {.device = device});
  Prng prng(1);
  for (int round = 0; round < 500; ++round) {
    const auto mark = static_cast<std::byte>(round);
    fill(both.own().first(50'000), mark);
    REQUIRE(status_of(both.here.jetty, write(both.own().first(50'000), both.target.segment)) ==
            Status::ok);
    REQUIRE(all_are(both.theirs().first(50'000), mark));
    both.hosts.run_for(Duration(static_cast<int64_t>(prng.below(4'000'000))));
  }
  CHECK(both.carried() > 0);
}

}  // namespace
}  // namespace urma::test
