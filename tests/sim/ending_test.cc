// SPDX-License-Identifier: Apache-2.0
// How works end early: because memory is unregistered, by flushes, and by deadlines.

#include <algorithm>
#include <array>

#include "tests/catch.h"
#include "tests/completions.h"
#include "tests/sim/pair.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;

TEST_CASE("after unregister has returned, a peer that still writes does not touch the memory") {
  SimHosts hosts("revoke");
  auto here = hosts.start("delay=20us&hold=5us", {.berths = 256});
  auto there = hosts.start("delay=20us&hold=5us");
  std::vector<std::byte> memory(1 << 20);
  const auto bytes = bytes_like(100'000);
  for (int round = 0; round < 20; ++round) {
    Segment segment = there.device.register_memory(memory).value();
    const RemoteSegment remote = here.device.import(segment.descriptor()).value().segment;
    const std::vector<Work> works(50, write(bytes, remote));
    REQUIRE(here.jetty.post(works) == works.size());
    hosts.run_for(Duration(50'000 * (round + 1)));
    segment.unregister().value();
    std::fill(memory.begin(), memory.end(), std::byte{0xee});
    const auto done = collect(here.jetty, works.size());
    REQUIRE(done.size() == works.size());
    hosts.run_for(5ms);
    CHECK(std::all_of(memory.begin(), memory.end(),
                      [](std::byte b) { return b == std::byte{0xee}; }));
  }
}

TEST_CASE("receives in unregistered memory are flushed, and nothing is placed there") {
  auto [hosts, here, there, target] = SimPair("unregister-receives");
  std::vector<std::byte> memory(64 * 1024);
  std::vector<std::byte> other(4096);
  const auto inside = std::span(memory);
  Segment segment = there.device.register_memory(inside).value();
  REQUIRE(there.jetty.receive(other, 1));
  REQUIRE(there.jetty.receive(inside.first(4096), 2));
  REQUIRE(there.jetty.receive(other, 3));
  REQUIRE(there.jetty.receive(inside.last(40'000), 4));
  REQUIRE(there.jetty.receive(other, 5));
  // A message is filling the second buffer: its last packets are on their way.
  hosts.network().faults.largest_packet = 1200;
  const auto bytes = bytes_like(100);
  REQUIRE(status_of(here.jetty, send(bytes, target.jetty), 1s) == Status::ok);
  REQUIRE(there.jetty.wait(1s).front().tag == 1);

  segment.unregister().value();
  const auto flushed = there.jetty.wait(1s);
  REQUIRE(flushed.size() == 2);
  for (const Completion& completion : flushed) {
    CHECK(completion.status == Status::flushed);
    CHECK(completion.tag % 2 == 0);
  }
  // The other buffers are still posted, in their order.
  for (const uint64_t tag : {3, 5}) {
    REQUIRE(status_of(here.jetty, send(bytes, target.jetty), 1s) == Status::ok);
    CHECK(there.jetty.wait(1s).front().tag == tag);
  }
  CHECK(std::ranges::all_of(memory, [](std::byte byte) { return byte == std::byte{}; }));
}

TEST_CASE("a message that is arriving when its memory is unregistered is refused") {
  auto [hosts, here, there, target] =
      SimPair("unregister-arriving", {.network = "delay=100us&mtu=1024"},
              {.network = "delay=100us&mtu=1024"});
  std::vector<std::byte> memory(64 * 1024);
  Segment segment = there.device.register_memory(memory).value();
  REQUIRE(there.jetty.receive(memory, 1));
  const auto bytes = bytes_like(64 * 1024);
  REQUIRE(status_of(here.jetty, write(bytes, target.segment), 1s) == Status::ok);
  REQUIRE(here.jetty.post(send(bytes, target.jetty)) == 1);
  while (memory[0] != bytes[0]) hosts.run_for(1us);
  segment.unregister().value();
  const std::vector<std::byte> before = memory;
  CHECK(there.jetty.wait(1s).front().status == Status::flushed);
  CHECK(only_status(here.jetty, 1s) == Status::remote_access);
  CHECK(memory == before);
}

TEST_CASE("a flush towards a silent peer takes no longer than the limit for an answer") {
  auto [hosts, here, there, target] = SimPair("flush-silent");
  const auto bytes = bytes_like(10'000);
  REQUIRE(status_of(here.jetty, write(bytes, target.segment), 1s) == Status::ok);
  hosts.network().faults.cut(there.device.endpoint(), here.device.endpoint(), true);
  for (uint64_t tag = 0; tag < 30; ++tag)
    REQUIRE(here.jetty.post(write(bytes, target.segment).tag(tag)) == 1);
  hosts.run_for(500us);
  const Time begun = hosts.now();
  here.jetty.flush().value();
  CHECK(hosts.now() - begun <= 10ms);
  size_t ended = 0;
  size_t unknown = 0;
  while (ended < 30) {
    const auto completions = here.jetty.wait(1ms);
    REQUIRE_FALSE(completions.empty());
    ended += completions.size();
    for (const Completion& completion : completions) {
      // Some works had found no room in the window.
      const bool never_left = completion.status == Status::flushed;
      CHECK((never_left || completion.status == Status::unknown));
      unknown += !never_left;
    }
  }
  CHECK(unknown > 0);
}

// Two peers of `here`, to each of which a work has ended well.
struct TwoPeers {
  TwoPeers(SimHosts& hosts, SimHosts::Host& here, std::span<const std::byte> bytes)
      : silent(hosts.start()),
        lively(hosts.start()),
        to_silent(here.device.import(silent.line).value()),
        to_lively(here.device.import(lively.line).value()) {
    for (const Imported* target : {&to_silent, &to_lively}) {
      REQUIRE(status_of(here.jetty, write(bytes, target->segment), 1s) == Status::ok);
    }
  }

  SimHosts::Host silent;
  SimHosts::Host lively;
  const Imported to_silent;
  const Imported to_lively;
};

TEST_CASE("traffic to one peer does not postpone a deadline towards another") {
  SimHosts hosts("deadlines");
  auto here = hosts.start("", {.berths = 64, .receives = 1, .operation_timeout = 50ms});
  const auto bytes = bytes_like(1000);
  auto [silent, lively, to_silent, to_lively] = TwoPeers(hosts, here, bytes);
  hosts.network().faults.cut(silent.device.endpoint(), here.device.endpoint(), true);
  REQUIRE(here.jetty.post(write(bytes, to_lively.segment).tag(1)) == 1);
  REQUIRE(here.jetty.post(write(bytes, to_silent.segment).tag(2)) == 1);
  const Time posted = hosts.now();
  bool ended = false;
  while (!ended && hosts.now() - posted < 1s) {
    for (const Completion& completion : here.jetty.wait(1ms)) {
      if (completion.tag == 2) {
        CHECK(completion.status == Status::unknown);
        ended = true;
      } else {
        REQUIRE(here.jetty.post(write(bytes, to_lively.segment).tag(1)) == 1);
      }
    }
  }
  CHECK(hosts.now() - posted <= 62ms);
}

// Counts the works with this tag that have ended since the last call.
size_t ended_with(Jetty& jetty, uint64_t tag) {
  std::array<Completion, 16> out;
  const size_t polled = jetty.poll(out);
  return static_cast<size_t>(std::ranges::count_if(
      std::span(out).first(polled), [&](const Completion& one) { return one.tag == tag; }));
}

// At most 100 ms of a gap between passes count as time. So a device that is never more than `late`
// late ends its works within late / 100 ms times the operation_timeout.
TEST_CASE("works of a device whose passes are late end within the bound of P1") {
  const Duration late = GENERATE(90ms, 150ms, 300ms, 700ms);
  SimHosts hosts("late-passes" + std::to_string(late.count()));
  auto here = hosts.start("delay=1ms", {.berths = 64});
  const auto bytes = bytes_like(1000);
  auto [silent, lively, to_silent, to_lively] = TwoPeers(hosts, here, bytes);
  hosts.kill(std::move(silent));
  REQUIRE(here.jetty.post(write(bytes, to_silent.segment).tag(2)) == 1);
  const Time posted = hosts.now();
  const Duration bound = (2s + 10ms) * std::max<int64_t>(late / 10ms, 10) / 10 + late + 10ms;
  size_t ended = 0;
  while (ended == 0 && hosts.now() - posted <= bound) {
    // Each time, the device is not run while it waits for an answer that is due soon.
    REQUIRE(here.jetty.post(write(bytes, to_lively.segment).tag(1)) == 1);
    hosts.run_for(100us);
    hosts.stop(here);
    hosts.run_for(late);
    hosts.stop(here, false);
    hosts.run_for(100us);
    ended = ended_with(here.jetty, 2);
  }
  INFO("after " << (hosts.now() - posted) / 1ms << " ms of at most " << bound / 1ms);
  CHECK(ended == 1);
  CHECK(hosts.now() - posted <= bound);
}

// The network passes set-up packets and drops data, so channels are made, and are lost after a
// second.
TEST_CASE("a new channel on which nothing arrives does not postpone the deadline of works") {
  auto [hosts, here, there, target] =
      SimPair("channels-in-vain", {.network = "delay=1ms", .jetty = {.berths = 64}},
              {.network = "delay=1ms"});
  const auto bytes = bytes_like(1000);
  REQUIRE(status_of(here.jetty, write(bytes, target.segment), 1s) == Status::ok);
  const auto cut = [&hosts = hosts, &here = here, &there = there](bool severed) {
    hosts.network().faults.cut(here.device.endpoint(), there.device.endpoint(), severed);
    hosts.network().faults.cut(there.device.endpoint(), here.device.endpoint(), severed);
  };
  cut(true);
  REQUIRE(here.jetty.post(write(bytes, target.segment).tag(2)) == 1);
  const Time posted = hosts.now();
  uint64_t made = here.device.stats().value().channels_made;
  size_t ended = 0;
  while (ended == 0 && hosts.now() - posted < 10s) {
    hosts.run_for(100us);
    const Statistics statistics = here.device.stats().value();
    // Each new channel gets 1 ms in which the first packet is on the wire, and is then cut.
    if (statistics.channels_made > made) cut(true);
    if (statistics.channels == 0) cut(false);
    made = statistics.channels_made;
    ended = ended_with(here.jetty, 2);
  }
  CHECK(made > 1);
  CHECK(ended == 1);
  CHECK(hosts.now() - posted <= 2s + 10ms);
}

TEST_CASE("unregister of the source of outstanding works ends them before it returns") {
  auto [hosts, here, there, target] =
      SimPair("source", {.network = "hold=10us", .jetty = {.berths = 64}});
  auto bytes = bytes_like(500'000);
  Segment source = here.device.register_memory(bytes).value();
  REQUIRE(here.jetty.post({write(bytes, target.segment).tag(1),
                           read(std::span(bytes).first(1000), target.segment).tag(2)}) == 2);
  hosts.run_for(20us);
  source.unregister().value();
  // Both works have completed by now, and the application may use the memory again.
  std::vector<Completion> out(8);
  CHECK(here.jetty.poll(out) == 2);
}

}  // namespace
}  // namespace urma::test
