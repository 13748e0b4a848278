// SPDX-License-Identifier: Apache-2.0
// Events, which a device reports besides completions: peers that come and leave, and attempted
// attacks.

#include "tests/sim/pair.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;
using Host = SimHosts::Host;

using Kinds = std::vector<EventKind>;

TEST_CASE("events: when a path is cut and heals, its peer is reported as lost once and back once") {
  auto [hosts, here, there, target] =
      SimPair("e-cut", {.jetty = {}, .device = {.operation_timeout = 20s}},
              {.network = "address=fd00::21"});
  const auto bytes = bytes_like(100);
  REQUIRE(status_of(here.jetty, write(bytes, target.segment), 1s) == Status::ok);
  CHECK(events_of(here).empty());
  const Endpoint at = there.device.endpoint();
  for (const bool cut : {true, false}) {
    hosts.network().faults.cut(here.device.endpoint(), at, cut);
    if (cut) REQUIRE(here.jetty.post(write(bytes, target.segment)) == 1);
    hosts.run_for(3s);
  }
  CHECK(only_status(here.jetty, 20s) == Status::ok);
  const std::vector<Event> events = events_of(here);
  REQUIRE(events.size() == 2);
  CHECK(events[0].kind == EventKind::peer_lost);
  CHECK(events[0].status == Status::timed_out);
  CHECK(events[0].from == at);
  CHECK(events[0].peer == target.segment.peer);
  CHECK(events[1].kind == EventKind::peer_back);
  CHECK(events[1].peer == target.segment.peer);
}

TEST_CASE("events: a killed peer and the next incarnation at its address are reported") {
  auto [hosts, here, there, old] = SimPair("e-life", {}, {.network = "address=fd00::22"});
  const auto bytes = bytes_like(100);
  REQUIRE(status_of(here.jetty, write(bytes, old.segment), 1s) == Status::ok);
  hosts.kill(std::move(there));
  CHECK(status_of(here.jetty, write(bytes, old.segment), 10s) == Status::unknown);
  CHECK(kinds_of(here) == Kinds{EventKind::peer_lost});
  there = hosts.start("address=fd00::22");
  CHECK(status_of(here.jetty, write(bytes, here.device.import(there.line).value().segment), 5s) ==
        Status::ok);
  hosts.run_for(10ms);
  CHECK(kinds_of(here) == Kinds{EventKind::peer_restarted});
  there.device.close();
  hosts.run_for(10ms);
  CHECK(kinds_of(here) == Kinds{EventKind::peer_left});
}

TEST_CASE("events: an address without a device is reported") {
  auto [hosts, here, there, target] = SimPair("e-nobody");
  hosts.kill(std::move(there));
  const auto bytes = bytes_like(100);
  CHECK(status_of(here.jetty, write(bytes, target.segment), 10s) == Status::peer_unreachable);
  hosts.run_for(1s);
  const std::vector<Event> events = events_of(here);
  REQUIRE(events.size() == 1);
  CHECK(events[0].kind == EventKind::peer_lost);
  CHECK(events[0].status == Status::peer_unreachable);
}

// A flood of one event is merged and counted, and other events are reported in their turn.
TEST_CASE("events: a flood of bad tokens is counted and displaces no other event") {
  SimHosts hosts("e-flood");
  Host here = hosts.start();
  Host there = hosts.start();
  Host other = hosts.start();
  Imported target = here.device.import(there.line).value();
  REQUIRE(
      there.segment.unregister().ok());  // the token was valid before: it is late, and not a guess
  there.segment = there.device.register_memory(there.memory).value();
  there.line = there.segment.descriptor();
  const auto bytes = bytes_like(100);
  uint64_t refused = 0;
  for (int round = 0; round < 400; ++round) {
    while (here.jetty.post(write(bytes, target.segment)) == 1) {
    }
    const auto ended = here.jetty.wait(1s);
    for (const Completion& completion : ended) {
      REQUIRE(completion.status == Status::remote_access);
      ++refused;
    }
    hosts.run_for(1ms);
    if (round == 200) {
      const Imported good = other.device.import(there.line).value();
      REQUIRE(status_of(other.jetty, write(bytes, good.segment), 1s) == Status::ok);
      other.device.close();
    }
  }
  for (;;) {
    const auto ended = here.jetty.wait(10ms);
    if (ended.empty()) break;
    refused += ended.size();
  }
  REQUIRE(refused > 10'000);
  uint64_t counted = 0;
  bool left = false;
  const std::vector<Event> events = events_of(there);
  for (const Event& event : events) {
    left = left || event.kind == EventKind::peer_left;
    if (event.kind == EventKind::bad_tokens) counted += event.count;
  }
  CHECK(left);
  // Events that the application did not take in time are merged and come later.
  hosts.run_for(10ms);
  for (const Event& event : events_of(there)) counted += event.count;
  CHECK(counted == refused);
  CHECK(events.size() <= 256 + 32);
}

TEST_CASE("events: a Jetty whose Jfr was destroyed is reported") {
  SimHosts hosts("e-jfr");
  Host here = hosts.start();
  Host there = hosts.start();
  std::optional<Jfr> jfr(there.device.jfr({.receives = 4}).value());
  Jetty jetty = there.device.jetty({.berths = 1, .receives_from = &*jfr}).value();
  const RemoteJetty target = here.device.import(jetty.descriptor()).value().jetty;
  const auto bytes = bytes_like(10);
  std::vector<std::byte> inbox(64);
  REQUIRE(jfr->receive(inbox));
  REQUIRE(status_of(here.jetty, send(bytes, target), 1s) == Status::ok);
  jfr.reset();
  REQUIRE(here.jetty.post({send(bytes, target), send(bytes, target)}) == 2);
  REQUIRE(here.jetty.wait(1s).front().status == Status::remote_unsupported);
  hosts.run_for(10ms);
  const std::vector<Event> events = events_of(there);
  REQUIRE(!events.empty());
  CHECK(events[0].kind == EventKind::jetty_error);
  CHECK(events[0].jetty == jetty.id());
}

}  // namespace
}  // namespace urma::test
