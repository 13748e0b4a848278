// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_switch/forwarder.h"

#include <set>

#include "base/prng.h"
#include "tests/apps/switch_parts.h"

namespace urma::test {
namespace {

using apps::switches::Forwarder;
using apps::switches::Hosts;
using apps::switches::Place;
using apps::switches::PortSet;

constexpr uint64_t byte_each_ns = 1'000'000'000;

Forwarder::Settings small_switch() {
  return {.hosts = {.ports = 4, .lease = 5s, .key = {1, 2}},
          .fabric = {.packet_bytes = 2000,
                     .packets = 64,
                     .buffer_bytes = 20'000,
                     .base_rtt = 100us,
                     .histograms = true},
          .port = {.bytes_per_second = byte_each_ns, .host = true}};
}

// A switch with the devices 1, 2 and 3, at addresses of these numbers.
struct Attached {
  explicit Attached(const Forwarder::Settings& settings = small_switch()) : forwarder(settings) {
    for (uint8_t number = 1; number <= 3; ++number) attach({host_at(number), number});
  }

  std::optional<LinkControl> tell(const FakeDevice& device, const LinkControl& message) {
    return forwarder.take(control_datagram(message), device.at, Ecn::not_ect, now);
  }
  std::optional<LinkControl> attach(const FakeDevice& device) {
    const auto challenge = tell(device, device.asks());
    REQUIRE(challenge);
    return tell(device, device.asks(challenge->cookie));
  }
  auto arrive(std::span<const std::byte> datagram, const Endpoint& from, Ecn ecn = Ecn::not_ect) {
    return forwarder.take(datagram, from, ecn, now);
  }
  // Returns the packets that have left by now.
  std::vector<Forwarder::Leaving> leave() {
    std::vector<Forwarder::Leaving> out;
    for (Forwarder::Leaving one; forwarder.next(now, one);) out.push_back(one);
    return out;
  }
  void release(const std::vector<Forwarder::Leaving>& all) {
    for (const auto& one : all) forwarder.release(one.slot);
  }
  uint64_t drops(uint32_t port, fabric::Drop reason) const {
    return forwarder.fabric().counters(port).drops[static_cast<size_t>(reason)];
  }

  Forwarder forwarder;
  Time now{1s};
};

bool equal(std::span<const std::byte> a, std::span<const std::byte> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

TEST_CASE("a set of ports finds its members in order") {
  constexpr uint32_t ports = 200;
  Prng prng(1);
  PortSet set(ports);
  std::set<uint32_t> model;
  for (int i = 0; i < 20'000; ++i) {
    const auto port = static_cast<uint32_t>(prng.below(ports));
    if (prng.below(8) < model.size() / 8) {
      set.remove(port);
      model.erase(port);
    } else {
      set.add(port);
      model.insert(port);
    }
    REQUIRE(set.size() == model.size());
    const auto from = static_cast<uint32_t>(prng.below(ports + 80));
    const auto next = model.lower_bound(from);
    REQUIRE(set.from(from) == (next == model.end() ? PortSet::none : *next));
  }
}

TEST_CASE("devices with equal addresses on two media are two devices") {
  Attached with;
  const Place there(host_at(1), 1);
  const auto tell = [&](std::span<const std::byte> datagram) {
    return with.forwarder.take(datagram, there, Ecn::not_ect, with.now);
  };
  CHECK(tell(packet_between(1, 2))->type == LinkMessage::unknown);
  const FakeDevice device{host_at(1), 4, 9};
  const auto challenge = tell(control_datagram(device.asks()));
  // The cookie of the one does not prove that the other receives.
  CHECK(with.tell(device, device.asks(challenge->cookie))->type == LinkMessage::challenge);
  CHECK(tell(control_datagram(device.asks(challenge->cookie)))->type == LinkMessage::attached);
  CHECK(with.forwarder.hosts().devices() == 4);
}

TEST_CASE("packets to a medium that is full stay, and the others leave") {
  Attached with;
  const Place there(host_at(4), 1);
  FakeDevice device{host_at(4), 4};
  const auto ask = [&](uint64_t cookie) {
    return with.forwarder.take(control_datagram(device.asks(cookie)), there, {}, with.now);
  };
  REQUIRE(ask(ask(0)->cookie)->type == LinkMessage::attached);
  with.arrive(packet_between(1, 4), host_at(1));
  with.arrive(packet_between(1, 2), host_at(1));
  const Time due = with.forwarder.due();
  with.now += 1us;
  Forwarder::Leaving one;
  REQUIRE(with.forwarder.next(with.now, one, 2));
  CHECK(one.to == host_at(2));
  with.forwarder.release(one.slot);
  CHECK_FALSE(with.forwarder.next(with.now, one, 2));
  CHECK(with.forwarder.due(2) == never);
  CHECK(with.forwarder.due() == due);
  REQUIRE(with.forwarder.next(with.now, one));
  CHECK(one.to == there);
}

TEST_CASE("a switch tells its devices which port meters it has") {
  for (const auto& kind : congestion::port_meters()) {
    Forwarder::Settings settings = small_switch();
    settings.fabric.meter = kind.name;
    Attached with(settings);
    const auto attached = with.attach({host_at(4), 4});
    REQUIRE(attached);
    CHECK(metering_of(*attached) == kind.metering);
  }
}

TEST_CASE("a switch names the rate of its port to a device that asks for it, and to no other") {
  Forwarder::Settings settings = small_switch();
  settings.fabric.meter = "caqm_r";
  settings.rates = {{5, 7'000'000}};
  Attached with(settings);
  const auto asks = [&](const FakeDevice& device, bool rated, uint64_t cookie = 0) {
    LinkControl message = device.asks(cookie);
    message.rated = rated;
    return *with.tell(device, message);
  };
  // Devices of older versions do not ask, and read the whole cookie as a number.
  CHECK(asks({host_at(1), 1}, false).cookie == cookie_of(congestion::Metering::rates));
  const LinkControl usual = asks({host_at(1), 1}, true);
  CHECK(usual.type == LinkMessage::attached);
  CHECK(rate_of(usual) == byte_each_ns);
  CHECK(metering_of(usual) == congestion::Metering::rates);
  const FakeDevice slow{host_at(4), 5};
  const LinkControl challenge = asks(slow, true);
  CHECK(challenge.type == LinkMessage::challenge);
  CHECK(rate_of(asks(slow, true, challenge.cookie)) == 7'000'000);
  CHECK(asks({host_at(1), 2}, true).type == LinkMessage::refused);
}

TEST_CASE("a packet reaches the device with its destination, at the rate of the port") {
  Attached with;
  const uint32_t free = with.forwarder.free_slots();
  const auto packet = packet_between(1, 2, 1000);
  CHECK_FALSE(with.arrive(packet, host_at(1), Ecn::ect0));
  CHECK(with.leave().empty());
  CHECK(with.forwarder.due() == with.now + 1us);
  with.now += 1us;
  const auto left = with.leave();
  REQUIRE(left.size() == 1);
  CHECK(left[0].to == host_at(2));
  CHECK(left[0].ecn == Ecn::ect0);
  auto expected = packet;
  edit_link_packet(expected, {.hops = 1}, 0);
  CHECK(equal(left[0].datagram, expected));
  with.release(left);
  CHECK(with.forwarder.free_slots() == free);
  CHECK(with.forwarder.due() == never);
}

TEST_CASE("a switch notes how late it was") {
  Attached with;
  for (const Duration late : {0us, 7us, 3us}) {
    with.arrive(packet_between(1, 2, 1000), host_at(1));
    with.now += 1us + late;
    with.release(with.leave());
  }
  CHECK(with.forwarder.counters().latest == 7us);
}

TEST_CASE("packets to one device leave behind each other, as a train") {
  Attached with;
  for (int i = 0; i < 4; ++i) {
    with.arrive(packet_between(1, 2, 1000), host_at(1));
    with.arrive(packet_between(1, 3, 1000), host_at(1));
  }
  with.now += 100us;
  const auto left = with.leave();
  REQUIRE(left.size() == 8);
  const auto other = [&](const auto& one) { return !(one.to == left[0].to); };
  CHECK(std::find_if(left.begin(), left.end(), other) - left.begin() == 4);
}

TEST_CASE("a packet with the source of another device is dropped and counted, at the port") {
  Attached with;
  with.arrive(packet_between(3, 2), host_at(1));
  with.arrive(packet_between(99, 2), host_at(1));
  with.now += 1ms;
  CHECK(with.leave().empty());
  CHECK(with.drops(0, fabric::Drop::spoofed_source) == 2);
}

TEST_CASE("a packet in a loop, without a route, or too large is dropped and counted") {
  Attached with;
  with.arrive(packet_between(1, 2, 100, 0, {.hops = 255}), host_at(1));
  with.arrive(packet_between(1, 99), host_at(1));
  with.arrive(packet_between(1, 2, 2001), host_at(1));
  with.now += 1ms;
  CHECK(with.leave().empty());
  CHECK(with.drops(0, fabric::Drop::hop_limit) == 1);
  CHECK(with.drops(0, fabric::Drop::unknown_destination) == 1);
  CHECK(with.drops(0, fabric::Drop::bad_size) == 1);
}

TEST_CASE("a device that is not attached is told so, but not for each of its packets") {
  Attached with;
  const auto answer = with.arrive(packet_between(9, 2), host_at(9));
  REQUIRE(answer);
  CHECK(answer->type == LinkMessage::unknown);
  int answers = 0;
  for (int i = 0; i < 100; ++i)
    answers += with.arrive(packet_between(9, 2), host_at(9)).has_value();
  CHECK(answers == 0);
  with.now += 10ms;
  CHECK(with.arrive(packet_between(9, 2), host_at(9)));
  CHECK(with.forwarder.counters().strangers == 102);
  CHECK(with.leave().empty());
}

TEST_CASE(
    "messages that only a switch sends, and datagrams without a message, are counted and ignored") {
  Attached with;
  for (const LinkMessage type : {LinkMessage::challenge, LinkMessage::attached,
                                 LinkMessage::refused, LinkMessage::unknown, LinkMessage{200}}) {
    CHECK_FALSE(with.tell({host_at(1)}, {.type = type, .cna = 1}));
  }
  CHECK(with.forwarder.counters().misdirected == 5);
  const std::vector<std::byte> zeros(40);
  for (size_t size = 0; size <= zeros.size(); ++size) {
    CHECK_FALSE(with.arrive(std::span(zeros).first(size), host_at(1)));
  }
  CHECK(with.forwarder.counters().malformed == 41);
  CHECK(with.forwarder.hosts().devices() == 3);
}

TEST_CASE("the packets of a device that vanished are dropped, and their memory is used again") {
  Attached with;
  const uint32_t free = with.forwarder.free_slots();
  for (int i = 0; i < 5; ++i) with.arrive(packet_between(1, 2, 1000), host_at(1));
  CHECK(with.forwarder.free_slots() == free - 5);
  with.now += 6s;  // no device asked again
  with.forwarder.age(with.now);
  CHECK(with.forwarder.hosts().devices() == 0);
  CHECK(with.forwarder.free_slots() == free);
  CHECK(with.leave().empty());
  CHECK(with.forwarder.due() == never);
  CHECK(with.arrive(packet_between(1, 2), host_at(1)));  // unknown
  REQUIRE(with.attach({host_at(2), 2}));
  CHECK(with.forwarder.last_cna(0) == 2);
}

TEST_CASE("a port keeps its counters for a device that returns, and clears them for another one") {
  Attached with;
  const FakeDevice device{host_at(2), 2};
  const fabric::Switch& at = with.forwarder.fabric();
  for (int i = 0; i < 5; ++i) with.arrive(packet_between(1, 2, 1000), host_at(1));
  with.arrive(packet_between(1, 1, 1000), host_at(2));  // a forged source
  with.now += 10us;
  with.release(with.leave());
  with.tell(device, device.leaves());
  REQUIRE(with.attach(device)->type == LinkMessage::attached);
  REQUIRE(with.forwarder.last_cna(1) == 2);
  CHECK(at.counters(1, 0).packets == 5);
  CHECK(at.counters(1).received_packets == 1);
  CHECK(with.drops(1, fabric::Drop::spoofed_source) == 1);
  CHECK(fabric::queue_quantile(*at.histogram(1, 0), 1) >= 4000);

  with.tell(device, device.leaves());
  REQUIRE(with.attach({host_at(4), 4})->type == LinkMessage::attached);
  REQUIRE(with.forwarder.last_cna(1) == 4);
  CHECK(at.counters(1, 0).packets == 0);
  CHECK(at.counters(1, 0).bytes == 0);
  CHECK(at.counters(1, 0).most_queue == 0);
  CHECK(at.counters(1).received_packets == 0);
  CHECK(with.drops(1, fabric::Drop::spoofed_source) == 0);
  CHECK(fabric::queue_quantile(*at.histogram(1, 0), 1) == 0);
  CHECK(at.counters(0).received_packets == 5);  // of another port
}

TEST_CASE("a queue that is full drops packets, and all memory comes back") {
  Attached with;
  const uint32_t free = with.forwarder.free_slots();
  for (int i = 0; i < 100; ++i) with.arrive(packet_between(1, 2, 1000), host_at(1));
  CHECK(with.drops(1, fabric::Drop::buffer_full) == 80);
  with.now += 1ms;
  const auto left = with.leave();
  CHECK(left.size() == 20);
  with.release(left);
  CHECK(with.forwarder.free_slots() == free);
}

TEST_CASE("while nothing is released, packets are dropped before memory ends") {
  Attached with;
  for (int i = 0; i < 2000; ++i) {
    with.now += 1us;
    with.arrive(packet_between(1, 2, 100), host_at(1));
    with.leave();
  }
  CHECK(with.forwarder.free_slots() == 0);
  CHECK(with.forwarder.counters().no_memory > 0);
}

TEST_CASE("a CCI that no switch may edit leaves as it came, with any value") {
  auto settings = small_switch();
  settings.fabric.meter = "caqm_r";
  Attached with(settings);
  const uint16_t disabled = cci_of(CaqmCci{.congested = true, .increase = true, .hint = 9});
  const uint16_t fecn = cci_of(FecnCci{.fecn = Fecn::severe});
  for (const uint16_t cci : {uint16_t{0}, disabled, fecn}) {
    with.arrive(packet_between(1, 2, 100, cci, {.switch_queue = 3}), host_at(1));
    with.now += 1ms;
    const auto left = with.leave();
    REQUIRE(left.size() == 1);
    const auto packet = parse_link_packet(left[0].datagram);
    CHECK(packet->nth.cci == cci);
    CHECK(packet->word.switch_queue == 3);
  }
}

TEST_CASE("a port with a meter says that it took part, how long packets waited, and refuses") {
  for (const char* meter : {"caqm_r", "caqm_w"}) {
    INFO(meter);
    auto settings = small_switch();
    settings.fabric.meter = meter;
    Attached with(settings);
    // Two senders at the rate of the port each.
    const uint16_t asks = cci_of(CaqmCci{.enabled = true, .increase = true, .hint = 106});
    int switched = 0, waited = 0, refused = 0, packets = 0;
    for (int i = 0; i < 3000; ++i) {
      with.now += 1us;
      with.arrive(packet_between(1, 3, 1000, asks), host_at(1));
      with.arrive(packet_between(2, 3, 1000, asks), host_at(2));
      const auto left = with.leave();
      for (const auto& one : left) {
        const auto packet = parse_link_packet(one.datagram);
        const auto cci = parse_cci<CaqmCci>(packet->nth.cci);
        REQUIRE(cci);
        ++packets;
        switched += cci->switched;
        waited += packet->word.switch_queue > 0;
        refused += cci->congested || !cci->increase;
      }
      with.release(left);
    }
    CHECK(switched == packets);
    CHECK(waited > packets / 2);
    CHECK(refused > 100);
  }
}

// ---- several switches

// Switch 1 has the devices 1 to 99, switch 2 those from 100 to 199. Both believe that the other one
// has those from 200 to 299.
Forwarder::Settings switch_of_two(uint8_t number) {
  Forwarder::Settings settings = small_switch();
  const bool first = number == 1;
  settings.hosts.first_cna = first ? 1 : 100;
  settings.hosts.last_cna = first ? 99 : 199;
  settings.trunks = {host_at(static_cast<uint8_t>(first ? 202 : 201), link_port)};
  settings.trunk_rate = byte_each_ns;
  settings.routes = {{first ? 100u : 1u, first ? 199u : 99u, {0}}, {200, 299, {0}}};
  return settings;
}

struct TwoSwitches {
  explicit TwoSwitches(const Forwarder::Settings& first = switch_of_two(1),
                       const Forwarder::Settings& second = switch_of_two(2))
      : one(first), two(second) {
    two.attach({host_at(4), 104});
  }

  // Carries what leaves each switch to the other one, or returns it if it leaves to a device.
  std::vector<std::vector<std::byte>> run(Duration time) {
    std::vector<std::vector<std::byte>> out;
    for (Duration passed{}; passed < time; passed += 1us) {
      one.now += 1us;
      two.now += 1us;
      carry(one, two, 201, out);
      carry(two, one, 202, out);
    }
    return out;
  }
  void carry(Attached& from, Attached& to, uint8_t number,
             std::vector<std::vector<std::byte>>& out) {
    const auto left = from.leave();
    for (const auto& packet : left) {
      if (packet.to.endpoint.port == link_port) {
        to.arrive(packet.datagram, host_at(number, link_port));
        ++trips;
      } else {
        out.emplace_back(packet.datagram.begin(), packet.datagram.end());
      }
    }
    from.release(left);
  }

  Attached one;
  Attached two;
  uint64_t trips = 0;  // between the switches
};

TEST_CASE("a packet reaches a device at another switch, and counts its hops") {
  TwoSwitches both;
  both.one.arrive(packet_between(1, 104, 1000), host_at(1));
  const auto arrived = both.run(10us);
  REQUIRE(arrived.size() == 1);
  auto expected = packet_between(1, 104, 1000);
  edit_link_packet(expected, {.hops = 2}, 0);
  CHECK(arrived[0] == expected);
  both.two.arrive(packet_between(104, 2, 1000), host_at(4));
  CHECK(both.run(10us).size() == 1);
}

TEST_CASE("a packet that a loop of routes brings back to its switch is dropped there") {
  TwoSwitches both;
  const uint32_t free = both.one.forwarder.free_slots();
  for (int i = 0; i < 10; ++i) both.one.arrive(packet_between(1, 250, 1000), host_at(1));
  CHECK(both.run(1ms).empty());
  CHECK(both.trips == 20);
  CHECK(both.one.drops(0, fabric::Drop::spoofed_source) == 10);
  CHECK(both.one.forwarder.free_slots() == free);
}

// The source is at a third switch, which the first one believes to be reached over both of the
// others.
TEST_CASE("a packet in a loop far from its source ends after 16 hops") {
  Forwarder::Settings first = switch_of_two(1), second = switch_of_two(2);
  const Endpoint third = host_at(203, link_port);
  first.trunks.push_back(third);
  first.routes.push_back({300, 399, {0, 1}});
  second.routes.push_back({300, 399, {0}});
  TwoSwitches both(first, second);
  both.one.arrive(packet_between(300, 250, 1000, 0, {.hops = 1}), third);
  CHECK(both.run(1ms).empty());
  CHECK(both.trips == 15);
  CHECK(both.two.drops(0, fabric::Drop::hop_limit) == 1);
}

TEST_CASE("another switch speaks only for the devices that it has") {
  Attached with(switch_of_two(1));
  const Endpoint other = host_at(202, link_port);
  with.arrive(packet_between(2, 1), other);    // a device of this switch
  with.arrive(packet_between(50, 1), other);   // of this switch, not attached
  with.arrive(packet_between(300, 1), other);  // without a route
  with.arrive(packet_between(104, 1), host_at(1));
  with.now += 1ms;
  CHECK(with.leave().empty());
  CHECK(with.drops(0, fabric::Drop::spoofed_source) == 3);
  CHECK(with.drops(1, fabric::Drop::spoofed_source) == 1);
  with.arrive(packet_between(104, 1), other);
  with.now += 1ms;
  CHECK(with.leave().size() == 1);
  // It can neither attach nor end the port of a device.
  CHECK_FALSE(with.tell({other, 7}, FakeDevice{other, 7}.asks()));
  CHECK_FALSE(with.tell({other, 1}, FakeDevice{host_at(1), 1}.leaves()));
  CHECK(with.forwarder.counters().misdirected == 2);
  CHECK(with.forwarder.hosts().devices() == 3);
}

TEST_CASE("flows to the same devices spread over switches of equal cost, and each keeps its way") {
  Forwarder::Settings settings = switch_of_two(1);
  settings.trunks.push_back(host_at(203, link_port));
  settings.routes = {{100, 199, {0, 1}}};
  Attached with(settings);
  int to_first = 0;
  for (unsigned flow = 0; flow < 256; ++flow) {
    auto packet = packet_between(1, 104, 100);
    packet[LinkWord::size + 8] = static_cast<std::byte>(flow);  // LBF
    const auto way_of = [&] {
      with.arrive(packet, host_at(1));
      with.now += 1us;
      const auto left = with.leave();
      REQUIRE(left.size() == 1);
      with.release(left);
      return left[0].to;
    };
    const Place way = way_of();
    CHECK(way_of() == way);
    to_first += way == settings.trunks[0];
  }
  CHECK(to_first > 90);
  CHECK(to_first < 166);
}

TEST_CASE("flows leave a switch that does not answer, and return to it when it answers again") {
  Forwarder::Settings settings = switch_of_two(1);
  settings.trunk_nonce = 33;
  settings.trunks.push_back(host_at(203, link_port));
  settings.routes = {{100, 199, {0, 1}}};
  Attached with(settings);
  const auto flows_to_first = [&] {
    int flows = 0;
    for (unsigned flow = 0; flow < 64; ++flow) {
      auto packet = packet_between(1, 104, 100);
      packet[LinkWord::size + 8] = static_cast<std::byte>(flow);  // LBF
      with.arrive(packet, host_at(1));
      with.now += 1us;
      const auto left = with.leave();
      REQUIRE(left.size() == 1);
      flows += left[0].to == settings.trunks[0];
      with.release(left);
    }
    return flows;
  };
  const auto answer = [&](uint32_t trunk) {
    const LinkControl asked = with.forwarder.ask(trunk);
    CHECK(asked.type == LinkMessage::attach);
    CHECK(asked.cna == 0);
    with.tell({settings.trunks[trunk]}, {.type = LinkMessage::attached, .nonce = asked.nonce});
  };
  const int before = flows_to_first();
  CHECK(before > 0);
  CHECK(before < 64);
  // The first one ends.
  for (int i = 0; i < 10; ++i) {
    with.forwarder.ask(0);
    answer(1);
  }
  CHECK(flows_to_first() == 0);
  // Without another one, flows stay. So they are back as soon as it is.
  for (int i = 0; i < 10; ++i) with.forwarder.ask(1);
  CHECK(flows_to_first() == before);
  answer(1);
  CHECK(flows_to_first() == 0);
  answer(0);
  CHECK(flows_to_first() == before);
  CHECK(with.forwarder.switches()[0].silences == 1);
  CHECK(with.forwarder.counters().misdirected == 0);
  // It asks as well, and is answered.
  const auto back = with.tell({settings.trunks[0]}, {.type = LinkMessage::attach, .nonce = 5});
  REQUIRE(back);
  CHECK(back->type == LinkMessage::attached);
  CHECK(back->nonce == 5);
}

TEST_CASE("a packet asks for nothing beyond a switch that would misread it") {
  for (const auto theirs : {congestion::Metering::increases, congestion::Metering::rates}) {
    Forwarder::Settings settings = switch_of_two(1);
    settings.fabric.meter = "caqm_r";
    Attached with(settings);
    const LinkControl asked = with.forwarder.ask(0);
    with.tell({settings.trunks[0]},
              {.type = LinkMessage::attached, .nonce = asked.nonce, .cookie = cookie_of(theirs)});
    const uint16_t asks = cci_of(CaqmCci{.enabled = true, .increase = true, .hint = 106});
    with.arrive(packet_between(1, 104, 1000, asks), host_at(1));
    with.now += 1ms;
    const auto left = with.leave();
    REQUIRE(left.size() == 1);
    const uint16_t cci = parse_link_packet(left[0].datagram)->nth.cci;
    if (theirs == congestion::Metering::increases) CHECK(cci == 0);
    if (theirs == congestion::Metering::rates) CHECK(parse_cci<CaqmCci>(cci)->switched);
  }
}

TEST_CASE("lanes have queues of their own, and a lane that the switch does not have is refused") {
  Forwarder::Settings settings = small_switch();
  settings.fabric.lanes = 2;
  Attached with(settings);
  const auto on_lane = [](uint8_t lane) {
    auto packet = packet_between(1, 2, 1000);
    packet[LinkWord::size + 9] = static_cast<std::byte>(lane << 4 | 2);  // SL, NLP
    return packet;
  };
  for (int i = 0; i < 5; ++i) with.arrive(on_lane(0), host_at(1));
  with.arrive(on_lane(1), host_at(1));
  with.arrive(on_lane(2), host_at(1));
  CHECK(with.drops(0, fabric::Drop::bad_lane) == 1);
  with.now += 2us;
  // One packet of lane 0 was on the line already.
  std::vector<uint8_t> lanes;
  for (const auto& one : with.leave()) {
    lanes.push_back(parse_link_packet(one.datagram)->nth.service_level);
  }
  CHECK(lanes == std::vector<uint8_t>{0, 1});
  with.now += 10us;
  CHECK(with.leave().size() == 4);
  CHECK(with.forwarder.fabric().counters(1, 0).packets == 5);
  CHECK(with.forwarder.fabric().counters(1, 1).packets == 1);
}

// The bytes that leave a port are never more than its rate allows, and nothing is made up.
TEST_CASE("no port exceeds its rate, and each packet that leaves had arrived") {
  Prng prng(3);
  Attached with;
  const Time begun = with.now;
  uint64_t arrived[4] = {}, left_bytes[4] = {};
  for (int i = 0; i < 5000; ++i) {
    with.now += Duration(static_cast<int64_t>(prng.below(2000)));
    const auto from = static_cast<uint8_t>(prng.between(1, 3));
    const auto to = static_cast<uint32_t>(prng.between(1, 3));
    const size_t bytes = prng.between(link_head_bytes + 1, 2000);
    with.arrive(packet_between(from, to, bytes), host_at(from));
    arrived[to] += bytes;
    const auto left = with.leave();
    for (const auto& one : left) {
      const auto packet = parse_link_packet(one.datagram);
      REQUIRE(packet);
      REQUIRE(one.to == host_at(static_cast<uint8_t>(packet->nth.destination)));
      left_bytes[packet->nth.destination] += one.datagram.size();
    }
    with.release(left);
    for (int port = 1; port <= 3; ++port) {
      REQUIRE(left_bytes[port] <= arrived[port]);
      REQUIRE(left_bytes[port] <= static_cast<uint64_t>((with.now - begun).count()));
    }
  }
}

}  // namespace
}  // namespace urma::test
