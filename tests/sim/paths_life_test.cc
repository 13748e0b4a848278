// SPDX-License-Identifier: Apache-2.0
// Peers with several paths that come, leave, move and restart while some of the paths are dead; and
// attackers that name addresses of others.

#include <algorithm>

#include "tests/sim/stranger.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;
using Host = SimHosts::Host;
using SetupType = SetupType;

struct SeveralPaths : SimPair {
  SeveralPaths(const std::string& net, unsigned count, const DeviceOptions& options = {},
               const std::string& port = "")
      : SimPair(net, host(net, count, options, port), host(net, count, options, port)), name(net) {}

  static HostOptions host(const std::string& net, unsigned count, const DeviceOptions& options,
                          const std::string& port) {
    std::string text = "paths():";
    for (unsigned i = 0; i < count; ++i) text += (i > 0 ? "+sim:" : "sim:") + net + port;
    return {.text = text, .jetty = {.berths = 64}, .device = options};
  }
  void cut(unsigned first, unsigned end, bool severed) {
    const auto ours = here.device.endpoints();
    const auto theirs = there.device.endpoints();
    for (unsigned i = first; i < end; ++i) {
      hosts.network().faults.cut(ours[i], theirs[i], severed);
      hosts.network().faults.cut(theirs[i], ours[i], severed);
    }
  }
  Status write_once(Duration limit = 5s) {
    REQUIRE(here.jetty.post(write(bytes, target.segment)) == 1);
    return only_status(here.jetty, limit);
  }
  // Writes for a time that is long enough to find out which paths there are.
  void write_for(Duration time) {
    for (const Time until = hosts.now() + time; hosts.now() < until; hosts.run_for(1ms)) {
      REQUIRE(write_once() == Status::ok);
    }
  }
  // Moves the other host to other addresses.
  void move() {
    const auto old = there.device.endpoints();
    for (size_t i = 0; i < old.size(); ++i) REQUIRE(there.device.add_path("sim:" + name).ok());
    for (const Endpoint& place : old) REQUIRE(there.device.remove_path(place).ok());
  }
  Statistics stats() { return here.device.stats().value(); }

  std::string name;  // of the network
  std::vector<std::byte> bytes = bytes_like(20'000);
};

TEST_CASE("after an idle close the paths that worked are asked first, and dead ones later") {
  for (const unsigned dead : {0u, 1u, 3u, 7u}) {
    INFO(dead << " dead");
    const unsigned all = dead == 7 ? 8 : 4;
    SeveralPaths pair("idle-dead" + std::to_string(dead), all, {.idle_timeout = 500ms});
    pair.write_for(5ms);
    pair.cut(0, dead, true);
    pair.write_for(200ms);
    pair.hosts.run_for(2s);
    REQUIRE(pair.stats().channels == 0);
    const Time begun = pair.hosts.now();
    CHECK(pair.write_once() == Status::ok);
    CHECK(pair.hosts.now() - begun < 12ms);
  }
}

TEST_CASE("a channel that died is made again over the only path that is left") {
  for (const unsigned dead : {0u, 1u, 2u, 3u}) {
    INFO(dead << " of 4 stay dead");
    SeveralPaths pair("again" + std::to_string(dead), 4);
    pair.write_for(5ms);
    pair.cut(0, 4, true);
    REQUIRE(pair.here.jetty.post(write(pair.bytes, pair.target.segment)) == 1);
    pair.hosts.run_for(1100ms);
    pair.cut(dead, 4, false);
    CHECK(only_status(pair.here.jetty, 10s) == Status::ok);
  }
}

TEST_CASE("a device that has asked unsuccessfully for minutes still asks over each path") {
  for (const unsigned left : {0u, 1u}) {
    INFO("path " << left);
    SeveralPaths pair("minutes" + std::to_string(left), 2, {.operation_timeout = 200s});
    pair.write_for(5ms);
    pair.cut(0, 2, true);
    REQUIRE(pair.here.jetty.post(write(pair.bytes, pair.target.segment)) == 1);
    pair.hosts.run_for(100s);
    pair.cut(left, left + 1, false);
    CHECK(only_status(pair.here.jetty, 1s) == Status::ok);
  }
}

TEST_CASE("a goodbye arrives even if only one of four paths works") {
  for (const unsigned dead : {1u, 3u}) {
    for (const bool first : {true, false}) {
      INFO(dead << " dead, " << (first ? "the first ones" : "the last ones"));
      SeveralPaths pair("goodbye" + std::to_string(dead) + (first ? "f" : "l"), 4);
      pair.write_for(5ms);
      pair.cut(first ? 0 : 4 - dead, first ? dead : 4, true);
      pair.write_for(500ms);
      pair.there.device.close();
      pair.hosts.run_for(500ms);
      CHECK(pair.stats().peers_left == 1);
    }
  }
}

TEST_CASE("a goodbye from addresses that the peer does not know is not lost") {
  SeveralPaths pair("goodbye-moved", 2);
  pair.write_for(10ms);
  const auto old = pair.there.device.endpoints();
  const auto from_old = [&](bool severed) {
    for (const Endpoint& from : old) {
      for (const Endpoint& to : pair.here.device.endpoints()) {
        pair.hosts.network().faults.cut(from, to, severed);
      }
    }
  };
  from_old(true);
  REQUIRE(pair.there.device.add_path("sim:" + pair.name).ok());
  REQUIRE(pair.there.device.add_path("sim:" + pair.name).ok());
  pair.hosts.run_for(300ms);
  from_old(false);
  pair.there.device.close();
  pair.hosts.run_for(100ms);
  CHECK(pair.stats().peers_left == 1);
}

TEST_CASE("a peer that moved while there was no channel is found by its new descriptor") {
  SeveralPaths pair("moved-idle", 2, {.idle_timeout = 50ms});
  pair.write_for(5ms);
  pair.hosts.run_for(1s);
  REQUIRE(pair.stats().channels == 0);
  pair.move();
  pair.target = pair.here.device.import(pair.there.segment.descriptor()).value();
  CHECK(pair.write_once() == Status::ok);
}

TEST_CASE("a peer that moved is found by its new descriptor while its old addresses are asked") {
  for (const unsigned ours : {1u, 2u}) {
    INFO(ours << " paths here");
    SeveralPaths pair("moved-asked" + std::to_string(ours), 2, {.idle_timeout = 50ms});
    if (ours == 1) {
      pair.here = pair.hosts.start("", {.berths = 64});
      pair.target = pair.here.device.import(pair.there.line).value();
    }
    pair.write_for(5ms);
    pair.hosts.run_for(1s);
    REQUIRE(pair.stats().channels == 0);
    pair.move();
    REQUIRE(pair.here.jetty.post(write(pair.bytes, pair.target.segment)) == 1);
    pair.hosts.run_for(1s);
    pair.target = pair.here.device.import(pair.there.segment.descriptor()).value();
    CHECK(only_status(pair.here.jetty, 500ms) == Status::ok);
    CHECK(pair.write_once() == Status::ok);
  }
}

TEST_CASE("an address that was removed and added again is asked") {
  SimHosts hosts("again-there");
  const auto port = [](int number) {
    return "sim:again-there?address=fd00::a" + std::to_string(number);
  };
  const DeviceOptions options{.idle_timeout = 50ms};
  Host here = hosts.start("", {.berths = 64}, options);
  Host there = SimHosts::start_at("paths():" + port(1) + "+" + port(2), {.berths = 64}, options);
  const auto bytes = bytes_like(3000);
  const auto first = there.device.endpoints();
  const auto write_once = [&] {
    const Imported target = here.device.import(there.segment.descriptor()).value();
    REQUIRE(here.jetty.post(write(bytes, target.segment)) == 1);
    return only_status(here.jetty, 5s);
  };
  REQUIRE(write_once() == Status::ok);
  REQUIRE(there.device.remove_path(first[0]).ok());
  REQUIRE(write_once() == Status::ok);
  hosts.run_for(1s);
  REQUIRE(here.device.stats().value().channels == 0);
  REQUIRE(there.device.add_path(port(1)).ok());
  REQUIRE(there.device.remove_path(first[1]).ok());
  CHECK(write_once() == Status::ok);
}

TEST_CASE("a peer is found at its last address, even if no path to it existed before") {
  SeveralPaths pair("unpaired", 2, {.idle_timeout = 50ms});
  pair.write_for(5ms);
  REQUIRE(pair.here.device.remove_path(pair.here.device.endpoints()[0]).ok());
  pair.write_for(5ms);
  pair.hosts.run_for(1s);
  REQUIRE(pair.stats().channels == 0);
  REQUIRE(pair.there.device.remove_path(pair.there.device.endpoints()[1]).ok());
  pair.target = pair.here.device.import(pair.there.segment.descriptor()).value();
  CHECK(pair.write_once() == Status::ok);
}

TEST_CASE("several paths work over a network with a smaller MTU than the ports") {
  for (const unsigned count : {2u, 3u, 4u, 8u}) {
    INFO(count << " paths");
    SeveralPaths pair("small" + std::to_string(count), count, {}, "?mtu=8K");
    pair.hosts.network().faults.largest_packet = 1400;
    CHECK(pair.write_once(10s) == Status::ok);
  }
}

TEST_CASE("a path that loses large packets is lost, and works continue on the other one") {
  for (const Retransmission& mode : {gbn_fast, sel_fast, sel_rack}) {
    INFO(name(mode));
    SeveralPaths pair("swallows-" + std::string(name(mode)), 2, {.retransmission = mode});
    pair.write_for(50ms);
    const Path first = pair.here.device.paths(pair.target.segment.peer).value()[0];
    pair.hosts.network().faults.cut(first.from, first.to, true, 1000);
    for (int i = 0; i < 200; ++i) {
      REQUIRE(pair.write_once() == Status::ok);
      pair.hosts.run_for(5ms);
    }
    CHECK(pair.stats().paths_lost == 1);
    CHECK(pair.stats().paths_back == 0);
    CHECK(pair.stats().channels_lost == 0);
  }
}

// ---- an attacker that names addresses of others

// Counts the packets that arrive at an address of a third party.
struct Victim {
  explicit Victim(SimHosts& hosts) : hosts_(hosts) {
    drivers::sim::Port::Settings settings{};
    settings.address = parse_address("fd00::99").value();
    port = std::move(*drivers::sim::Port::open(hosts.shared_network(), settings));
  }
  void look() {
    std::array<RxFrame, 64> frames;
    for (size_t count = 1; count > 0;) {
      count = port->receive(frames, hosts_.now());
      for (const RxFrame& frame : std::span(frames).first(count)) note(frame);
      port->release(std::span(frames).first(count));
    }
  }
  void note(const RxFrame& frame) {
    const auto setup = parse_setup(std::span(frame.data, frame.bytes - icrc_bytes));
    if (!setup) {
      data += frame.bytes > acknowledgement_bytes;
    } else {
      (setup->message.type == SetupType::question ? questions : others) += 1;
    }
  }
  const Endpoint& at() const { return port->facts().self; }

  SimHosts& hosts_;
  std::unique_ptr<drivers::PacketPort> port;
  static constexpr uint32_t acknowledgement_bytes = 100;
  uint64_t data = 0;  // all except acknowledgements
  uint64_t questions = 0;
  uint64_t others = 0;
};

std::vector<std::byte> list_of(std::span<const Endpoint> places, uint32_t number) {
  constexpr size_t most = SetupMessage::most_paths_size;
  PathList list;
  for (unsigned i = 0; i < places.size(); ++i) list.set(i, places[i]);
  list.number = number;
  std::array<std::byte, most> out;
  const size_t bytes = emit_paths(list, out);
  return {out.begin(), out.begin() + static_cast<std::ptrdiff_t>(bytes)};
}

struct Liar {
  // Announces its own address and, this many times, the victim's.
  Liar(const std::string& name, unsigned times)
      : hosts(name), here(hosts.start()), victim(hosts), who(hosts, "fd00::55") {
    who.features = feature_paths | feature_new_paths;
    std::vector<Endpoint> places{who.at()};
    places.resize(1 + times, victim.at());
    who.paths = list_of(places, 0);
    REQUIRE(who.connect(here.device.endpoint()));
    who.keep_alive();
  }
  void look(Duration time) {
    hosts.run_for(time);
    victim.look();
  }

  SimHosts hosts;
  Host here;
  Victim victim;
  Stranger who;
};

TEST_CASE("no data is sent to an address that a peer only claims") {
  Liar liar("names-data", 1);
  SetupMessage moved;
  moved.type = SetupType::paths;
  moved.features |= liar.who.features;
  moved.from_life = liar.who.life;
  moved.to_life = liar.who.their_life();
  moved.from_tpn = liar.who.ours();
  moved.to_tpn = liar.who.theirs();
  moved.cookie = 5;
  const std::array<Endpoint, 2> places{Endpoint{}, liar.victim.at()};
  liar.who.paths = list_of(places, 1);
  liar.who.say(liar.here.device.endpoint(), moved);
  const RemoteSegment segment = liar.here.segment.local();
  for (uint32_t i = 0; i < 40; ++i) {
    TaRequest request;
    request.base = {.opcode = static_cast<uint8_t>(TaOpcode::read), .token_present = true};
    request.base.tassn = i;
    request.base.rc_id = 77;
    request.memory = {
        .address = segment.address, .token_id = number(segment.token_id), .length = 65536};
    request.token.token = number(segment.token);
    liar.who.send({.slice = i + 1}, request, {});
    liar.look(10ms);
  }
  CHECK(liar.victim.data == 0);
  CHECK(liar.victim.others == 0);
  CHECK(liar.victim.questions < 15);
}

TEST_CASE("no OPEN is sent to an address that a peer only claims, and questions become rare") {
  Liar liar("names-open", 7);
  for (int i = 0; i < 10; ++i) {
    SetupMessage reset;
    reset.type = SetupType::reset;
    reset.from_tpn = liar.who.ours();
    reset.to_tpn = liar.who.theirs();
    reset.echoed_psn = (liar.who.their_psn() - 1) & 0xffffff;  // a PSN that was never sent
    liar.who.say(liar.here.device.endpoint(), reset);
    for (int k = 0; k < 5; ++k) {
      liar.who.keep_alive();
      liar.look(200ms);
    }
  }
  CHECK(liar.victim.data == 0);
  CHECK(liar.victim.others == 0);
  CHECK(liar.victim.questions < 7 * 20);
}

TEST_CASE("RETRYs cause OPENs only to the peer that was asked, and fewer than one each") {
  SimHosts hosts("retry-elsewhere");
  Host here = hosts.start("", {.berths = 64}, {.operation_timeout = 5s});
  Victim victim(hosts);
  Stranger liar(hosts, "fd00::66");
  liar.features = feature_paths | feature_new_paths;
  const std::array<Endpoint, 2> places{liar.at(), victim.at()};
  liar.paths = list_of(places, 0);
  REQUIRE(liar.connect(here.device.endpoint()));
  liar.keep_alive();
  // A PSN that the victim may have sent, so the liar is asked whether it has lost its channel.
  SetupMessage reset;
  reset.type = SetupType::reset;
  reset.to_tpn = liar.theirs();
  reset.from_tpn = liar.ours();
  reset.echoed_psn = liar.their_psn();
  const RemoteSegment segment = here.segment.local();
  TaRequest request;
  request.base = {.opcode = static_cast<uint8_t>(TaOpcode::read), .token_present = true};
  request.base.rc_id = 77;
  request.memory = {.address = segment.address, .token_id = number(segment.token_id), .length = 8};
  request.token.token = number(segment.token);
  liar.send({.slice = 1}, request, {});
  hosts.run_for(1ms);
  while (liar.heard()) {
  }
  liar.say(here.device.endpoint(), reset);
  std::optional<SetupMessage> asked;
  for (int i = 0; i < 100 && !(asked && asked->type == SetupType::open); ++i) {
    hosts.run_for(1ms);
    asked = liar.heard();
  }
  REQUIRE((asked && asked->type == SetupType::open));
  victim.look();
  const uint64_t sent = hosts.network().counters().sent;
  for (uint64_t i = 1; i <= 50; ++i) {
    SetupMessage retry;
    retry.type = SetupType::retry;
    retry.from_life = liar.life;
    retry.to_life = asked->from_life;
    retry.to_tpn = asked->from_tpn;
    retry.attempt = asked->attempt;
    retry.cookie = i;
    liar.say(here.device.endpoint(), retry);
  }
  victim.look();
  CHECK(victim.data + victim.others == 0);
  CHECK(hosts.network().counters().sent - sent < 50 + 10);
}

TEST_CASE("an address that is being removed may still answer, and its peer is found afterwards") {
  SimHosts hosts("leaving");
  const std::string two_ports = "paths():sim:leaving?delay=1ms+sim:leaving?delay=1ms";
  Host two = SimHosts::start_at(two_ports, {.berths = 64}, {});
  Host one = hosts.start("delay=1ms", {.berths = 64}, {.operation_timeout = 5s});
  Host deaf = hosts.start("delay=1ms");
  const auto bytes = bytes_like(3000);
  const Imported by_deaf = deaf.device.import(two.line).value();
  REQUIRE(status_of(deaf.jetty, write(bytes, by_deaf.segment), 1s) == Status::ok);
  hosts.stop(deaf);  // so it does not acknowledge the new list of paths
  const Imported to = one.device.import(two.line).value();
  REQUIRE(one.jetty.post(write(bytes, to.segment)) == 1);
  hosts.run_for(10us);
  REQUIRE(two.device.remove_path(two.device.endpoints()[0]).ok());
  CHECK(only_status(one.jetty, 5s) == Status::ok);
  hosts.run_for(100ms);
  CHECK(status_of(one.jetty, write(bytes, to.segment), 10s) == Status::ok);
  CHECK(one.device.stats().value().channels_lost == 0);
}

TEST_CASE("a peer that never uses its channel is forgotten, even if a path is added meanwhile") {
  SimHosts hosts("half-open");
  const std::string ports = "paths():sim:half-open+sim:half-open";
  Host here = SimHosts::start_at(ports, {.berths = 64}, {.idle_timeout = 1s});
  Stranger liar(hosts, "fd00::66");
  liar.say(here.device.endpoint(), liar.open());
  REQUIRE(here.device.stats().value().channels == 1);
  REQUIRE(here.device.add_path("sim:half-open").ok());
  hosts.run_for(1min);
  CHECK(here.device.stats().value().channels == 0);
}

TEST_CASE("datagrams that a device sends to itself arrive after its first address was removed") {
  SimHosts hosts("dg-self");
  Host self =
      SimHosts::start_at("paths():sim:dg-self+sim:dg-self", {.berths = 64, .receives = 64}, {});
  const JettyOptions unreliable{.berths = 64, .receives = 0, .mode = ServiceMode::unreliable};
  Jetty out = self.device.jetty(unreliable).value();
  const RemoteJetty own = self.device.import(self.line).value().jetty;
  std::vector<std::byte> inbox(4096);
  const auto bytes = bytes_like(10);
  const auto come = [&] {
    REQUIRE(self.jetty.receive(inbox, 1));
    REQUIRE(status_of(out, send(bytes, own), 10ms) == Status::ok);
    hosts.run_for(10ms);
    return self.jetty.wait(1ms).size();
  };
  CHECK(come() == 1);
  REQUIRE(self.device.remove_path(self.device.endpoints()[0]).ok());
  CHECK(come() == 1);
}

}  // namespace
}  // namespace urma::test
