// SPDX-License-Identifier: Apache-2.0
// Unused channels are closed. No work is lost or executed twice because of that.

#include <string>

#include "tests/catch.h"
#include "tests/sim/pair.h"
#include "tests/sim/stranger.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;
using Host = SimHosts::Host;

constexpr JettyOptions both_ways = {.berths = 64, .receives = 64};

Statistics stats_of(Host& host) { return host.device.stats().value(); }

void write_once(Host& from, const Imported& to) {
  static const auto bytes = bytes_like(3000);
  REQUIRE(status_of(from.jetty, write(bytes, to.segment), 1s) == Status::ok);
}

TEST_CASE("an unused channel is closed, and the next work makes a new one") {
  auto [hosts, here, there, target] = SimPair(
      "idle", {.network = "delay=50us", .jetty = both_ways, .device = {.idle_timeout = 10s}},
      {.network = "delay=50us", .jetty = both_ways, .device = {.idle_timeout = Duration{}}});
  const Imported back = there.device.import(here.line).value();
  write_once(here, target);
  hosts.run_for(9s);
  write_once(here, target);  // the idle time counts from the last packet
  hosts.run_for(9s);
  CHECK(stats_of(here).channels == 1);
  hosts.run_for(2s);
  for (Host* host : {&here, &there}) {
    const Statistics statistics = stats_of(*host);
    CHECK(statistics.channels == 0);
    CHECK(statistics.channels_idle == 1);
    CHECK(statistics.channels_lost == 0);
    CHECK(statistics.peers == 2);  // the peer, and the device itself
    std::array<Event, 8> events;
    CHECK(host->device.events(events) == 0);
  }
  // From then on the devices have nothing to do.
  const uint64_t packets = hosts.network().counters().sent;
  const uint64_t passes = stats_of(here).passes;
  hosts.run_for(1h);
  CHECK(hosts.network().counters().sent == packets);
  CHECK(stats_of(here).passes <= passes + 2);

  const Time again = hosts.now();
  write_once(there, back);
  CHECK(hosts.now() - again < 1ms);
  write_once(here, target);
  CHECK(stats_of(here).channels_made == 2);
  CHECK(stats_of(here).unknown + stats_of(there).unknown == 0);
}

TEST_CASE("a channel stays while works wait on it, and where closing idle channels is disabled") {
  SimHosts hosts("idle-not");
  const DeviceOptions short_lived = {.operation_timeout = 20s, .idle_timeout = 5ms};
  auto here = hosts.start("", both_ways, short_lived);
  auto there = hosts.start("", {.berths = 4, .receives = 1}, short_lived);
  const Imported target = here.device.import(there.line).value();
  const auto bytes = bytes_like(10);
  // The receiver has no buffer for the message for a long time.
  REQUIRE(here.jetty.post(send(bytes, target.jetty)) == 1);
  hosts.run_for(3s);
  std::vector<std::byte> inbox(100);
  REQUIRE(there.jetty.receive(inbox, 1));
  CHECK(only_status(here.jetty, 1s) == Status::ok);
  CHECK(only_status(there.jetty, 1s) == Status::ok);
  CHECK(stats_of(here).unknown == 0);

  SimHosts others("idle-never");
  auto a = others.start("", both_ways, {.idle_timeout = Duration{}});
  auto b = others.start("", both_ways, {.idle_timeout = Duration{}});
  write_once(a, a.device.import(b.line).value());
  others.run_for(2h);
  CHECK(stats_of(a).channels == 1);
}

// Counts the arrivals and the completions of a host, by number.
struct Tally {
  std::vector<unsigned> arrived;
  std::vector<unsigned> ended;
  uint64_t unsuccessful = 0;

  explicit Tally(size_t works) : arrived(works), ended(works) {}
  void poll(Host& host) {
    std::array<Completion, 16> out;
    while (const size_t count = host.jetty.poll(out)) {
      for (const Completion& completion : std::span(out).first(count)) {
        unsuccessful += !completion.ok();
        const bool arrival = completion.operation == Operation::receive;
        ++(arrival ? arrived[completion.immediate] : ended[completion.tag]);
      }
    }
  }
};

// Works are posted at every moment around a close by either end or both, while the wire loses or
// repeats the messages of the close. Each work executes once and succeeds.
TEST_CASE("works that race with the close of their idle channel execute once each") {
  const char* const wire = GENERATE("delay=20us", "delay=20us&loss=20%", "delay=20us&dup=50%");
  INFO(wire);
  SimHosts hosts(std::string("idle-race-") + wire);
  const DeviceOptions options = {.operation_timeout = 20s, .idle_timeout = 2ms};
  auto a = hosts.start(wire, both_ways, options);
  auto b = hosts.start(wire, both_ways, options);
  const Imported to_b = a.device.import(b.line).value();
  const Imported to_a = b.device.import(a.line).value();
  static const auto bytes = bytes_like(200);
  constexpr unsigned rounds = 300;
  Tally at_a(rounds), at_b(rounds);
  for (unsigned i = 0; i < rounds; ++i) {
    // The moments go from 100 us before one of the ends asks for the close to 500 us after that.
    hosts.run_for(1900us + 6us * (i / 3));
    const auto told = [&](const Imported& to) {
      return write(bytes, to.segment).to(to.jetty).immediate(i).tag(i);
    };
    if (i % 3 != 1) REQUIRE(a.jetty.post(told(to_b)) == 1);
    if (i % 3 != 0) REQUIRE(b.jetty.post(told(to_a)) == 1);
    const auto missing = [&] {
      return at_a.ended[i] < (i % 3 != 1) || at_b.ended[i] < (i % 3 != 0);
    };
    for (const Time begun = hosts.now(); missing();) {
      REQUIRE(hosts.now() - begun < 10s);
      hosts.run_for(20us);
      at_a.poll(a);
      at_b.poll(b);
    }
  }
  hosts.run_for(100ms);
  at_a.poll(a);
  at_b.poll(b);
  for (unsigned i = 0; i < rounds; ++i) {
    INFO("round " << i);
    REQUIRE(at_a.ended[i] == (i % 3 != 1));
    REQUIRE(at_b.arrived[i] == (i % 3 != 1));
    REQUIRE(at_b.ended[i] == (i % 3 != 0));
    REQUIRE(at_a.arrived[i] == (i % 3 != 0));
  }
  CHECK(at_a.unsuccessful + at_b.unsuccessful == 0);
  CHECK(stats_of(a).unknown + stats_of(b).unknown == 0);
  CHECK(stats_of(a).channels_idle > 20);
  CHECK(stats_of(a).channels_lost == 0);
  CHECK(stats_of(a).channels == 0);
  CHECK(stats_of(b).channels == 0);
}

// A send was executed and its answer lost, and the end that does not know this closed the idle
// channel. The next channel carries the send again, and the execution record says that it was
// executed.
TEST_CASE("a send that was executed before its idle channel was closed is not executed again") {
  auto [hosts, here, there, target] =
      SimPair("idle-record",
              {.jetty = both_ways, .device = {.operation_timeout = 20s, .idle_timeout = 50ms}},
              {.jetty = both_ways, .device = {.idle_timeout = 50ms}});
  write_once(here, target);
  const Endpoint from = there.device.endpoint();
  hosts.network().faults.cut(from, here.device.endpoint(), true);
  const auto bytes = bytes_like(100);
  REQUIRE(here.jetty.post(write(bytes, target.segment).to(target.jetty).immediate(9)) == 1);
  CHECK(only_status(there.jetty, 1s) == Status::ok);
  hosts.run_for(3s);
  hosts.network().faults.cut(from, here.device.endpoint(), false);
  CHECK(only_status(here.jetty, 15s) == Status::ok);
  hosts.run_for(200ms);
  CHECK(there.jetty.wait(1ms).empty());
  CHECK(stats_of(there).repeated == 1);
}

// Each channel has one timer, set once when it falls silent. Idle peers cause no passes.
TEST_CASE("any number of idle peers causes no timer work") {
  SimHosts hosts("idle-many");
  auto here = hosts.start();  // minutes
  std::vector<Host> peers;
  for (unsigned i = 0; i < 300; ++i) {
    peers.push_back(hosts.start("", {.berths = 2}));
    write_once(peers.back(), peers.back().device.import(here.line).value());
  }
  hosts.run_for(1s);
  const uint64_t passes = stats_of(here).passes;
  hosts.run_for(4min);
  const uint64_t idle = stats_of(here).passes - passes;
  std::printf("300 idle peers, 4 minutes: %lu passes\n", idle);
  CHECK(idle < 10);
  CHECK(stats_of(here).channels == 300);
  hosts.run_for(2min);
  CHECK(stats_of(here).channels == 0);
  for (Host& peer : peers) hosts.kill(std::move(peer));
}

TEST_CASE("a peer that died while its channel was unused costs three packets") {
  auto [hosts, here, there, target] =
      SimPair("idle-dead", {.jetty = both_ways, .device = {.idle_timeout = 1s}},
              {.jetty = both_ways, .device = {.idle_timeout = 1s}});
  write_once(here, target);
  hosts.run_for(10ms);  // by then all packets are acknowledged
  hosts.kill(std::move(there));
  const uint64_t packets = hosts.network().counters().sent;
  hosts.run_for(10s);
  CHECK(hosts.network().counters().sent == packets + 3);
  CHECK(stats_of(here).channels == 0);
  CHECK(stats_of(here).channels_idle == 1);
}

TEST_CASE("late CLOSE and CLOSED messages, and those of strangers, end no channel in use") {
  SimHosts hosts("idle-stranger");
  auto here = hosts.start("", both_ways, {.idle_timeout = 100ms});
  using SetupType = SetupType;
  Stranger peer(hosts, "fd00::55");
  const Endpoint to = here.device.endpoint();
  REQUIRE(peer.connect(to));
  peer.keep_alive();
  hosts.run_for(110ms);
  const auto asked = peer.heard();
  REQUIRE(asked);
  REQUIRE(asked->type == SetupType::close);
  CHECK(asked->reason == SetupReason::idle);
  CHECK(asked->cookie != 0);
  SetupMessage closed;
  closed.type = SetupType::closed;
  closed.from_life = peer.life;
  closed.to_life = asked->from_life;
  closed.to_tpn = asked->from_tpn;
  closed.cookie = asked->cookie + 1;
  peer.say(to, closed);
  CHECK(stats_of(here).channels == 1);
  closed.cookie = 0;
  peer.say(to, closed);
  CHECK(stats_of(here).channels == 1);
  closed.cookie = asked->cookie;
  peer.say(to, closed);
  CHECK(stats_of(here).channels == 0);

  // The CLOSE was for the previous channel: the present one stays open.
  REQUIRE(peer.connect(to));
  peer.keep_alive();
  CHECK(stats_of(here).channels == 1);
  peer.say(to, closed);
  CHECK(stats_of(here).channels == 1);
  SetupMessage close = closed;
  close.type = SetupType::close;
  close.reason = SetupReason::idle;
  close.from_tpn = asked->to_tpn;  // of the previous channel
  close.cookie = 7;
  peer.say(to, close);
  CHECK(stats_of(here).channels == 1);
  const auto answer = peer.heard();
  REQUIRE(answer);
  CHECK(answer->type == SetupType::closed);
  CHECK(answer->cookie == 7);
}

// Memory of idle channels can be used for others, so a device serves many more peers than it can
// have at a time.
TEST_CASE("a device serves more peers than its table holds, because idle ones make room") {
  SimHosts hosts("idle-room");
  auto here = hosts.start("", both_ways, {.idle_timeout = 20ms, .limits = {.peers = 8}});
  for (unsigned i = 0; i < 40; ++i) {
    auto peer = hosts.start("", both_ways, {.idle_timeout = 20ms});
    write_once(peer, peer.device.import(here.line).value());
    hosts.run_for(60ms);
    hosts.kill(std::move(peer));
  }
  CHECK(stats_of(here).channels == 0);
  CHECK(stats_of(here).peers <= 8);
  CHECK(stats_of(here).channels_idle == 40);
}

}  // namespace
}  // namespace urma::test
