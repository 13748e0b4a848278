// SPDX-License-Identifier: Apache-2.0
#include "fabric/switch.h"

#include <array>
#include <set>

#include "tests/catch.h"
#include "tests/unit/fabric/switch_parts.h"

namespace urma::fabric {
namespace {

constexpr uint32_t trunk_port = 3;

// A switch with hosts at ports 0 to 2, and a trunk at port 3 that leads to the addresses from 10.
Switch switch_with_trunk(const SwitchSettings& settings = {
                             .ports = 4, .lanes = 2, .packet_bytes = 1000, .hops = 4}) {
  Switch at = switch_of_hosts(settings);
  at.routes().detach(trunk_port + 1);
  at.connect(trunk_port, {.bytes_per_second = 1'000'000'000, .host = false});
  const uint16_t trunk[] = {trunk_port};
  at.routes().set(10, 19, trunk);
  return at;
}

void check_refused(Switch& at, Packet packet, uint32_t from, Drop reason) {
  INFO(name_of(reason));
  const Packet before = packet;
  const uint64_t drops = drops_of(at, from, reason);
  const Arrival arrival = at.arrive(packet, from, at_ns(0));
  CHECK(arrival.drop == reason);
  CHECK(arrival.port == from);
  CHECK(arrival.departs == never);
  CHECK(packet == before);
  CHECK(drops_of(at, from, reason) == drops + 1);
  CHECK(at.used_bytes() == 0);
}

TEST_CASE("small packets that wait at a slow port leave room for those to other ports") {
  Switch at = switch_of_hosts({.ports = 4, .packets = 100});
  at.connect(0, {.bytes_per_second = 1, .host = true});
  for (int i = 0; i < 200; ++i) {
    Packet packet = packet_to(0, 1, 15);
    at.arrive(packet, 1, at_ns(0));
  }
  CHECK(drops_of(at, 0, Drop::no_slot) == 150);
  for (int i = 0; i < 200; ++i) {
    Packet packet = packet_to(3, 2, 1000);
    CHECK(at.arrive(packet, 2, at_ns(2000 * i)).drop == Drop::none);
  }
}

TEST_CASE("bad packets are dropped, counted by reason, and change nothing else") {
  Switch at = switch_with_trunk();
  const Packet good = packet_to(1, 0, 1000);
  const auto with = [&](auto edit) {
    Packet packet = good;
    edit(packet);
    return packet;
  };
  check_refused(at, with([](Packet& it) { it.bytes = 0; }), 0, Drop::bad_size);
  check_refused(at, with([](Packet& it) { it.bytes = 1001; }), 0, Drop::bad_size);
  check_refused(at, with([](Packet& it) { it.lane = 2; }), 0, Drop::bad_lane);
  check_refused(at, with([](Packet& it) { it.hops = 4; }), 0, Drop::hop_limit);
  for (const uint32_t nowhere : {0u, 9u, 20u, most_addresses, UINT32_MAX}) {
    check_refused(at, with([&](Packet& it) { it.destination = nowhere; }), 0,
                  Drop::unknown_destination);
  }
  // A host may not use another host's address, or one that is not attached; and no packet with
  // the address of a host here comes from another switch.
  for (const uint32_t source : {2u, 9u, 10u, UINT32_MAX}) {
    check_refused(at, with([&](Packet& it) { it.source = source; }), 0, Drop::spoofed_source);
  }
  check_refused(at, good, trunk_port, Drop::spoofed_source);
  CHECK(at.counters(0).received_packets == 13);
  CHECK(at.counters(0).dropped_bytes == at.counters(0).received_bytes);

  Packet packet = good;
  CHECK(at.arrive(packet, 0, at_ns(0)).drop == Drop::none);
  packet = with([](Packet& it) { it.source = 10; });
  CHECK(at.arrive(packet, trunk_port, at_ns(0)).drop == Drop::none);
}

TEST_CASE("a trunk that checks routes accepts only sources to which a route leads through it") {
  Switch at = switch_with_trunk();
  const uint16_t elsewhere[] = {2};
  at.routes().set(30, 39, elsewhere);
  at.connect(trunk_port, {.bytes_per_second = 1'000'000'000, .checks_routes = true});
  for (const uint32_t source : {1u, 9u, 20u, 30u, most_addresses, UINT32_MAX}) {
    check_refused(at, {.source = source, .destination = 2, .bytes = 100}, trunk_port,
                  Drop::spoofed_source);
  }
  Packet packet{.source = 10, .destination = 2, .bytes = 100};
  CHECK(at.arrive(packet, trunk_port, at_ns(0)).drop == Drop::none);
}

TEST_CASE("packets that go round in a loop end at the hop limit") {
  Switch at({.ports = 2, .addresses = 16, .hops = 5});
  const uint16_t other[] = {1};
  at.connect(0, {});
  at.connect(1, {});
  at.routes().set(7, 7, other);
  Packet packet{.source = 1, .destination = 7, .bytes = 100};
  for (int hop = 0; hop < 5; ++hop) CHECK(at.arrive(packet, 0, at_ns(hop)).drop == Drop::none);
  CHECK(at.arrive(packet, 0, at_ns(5)).drop == Drop::hop_limit);
}

TEST_CASE("packets are marked exactly if the bytes ahead of them exceed the threshold") {
  Switch at = switch_of_hosts({.ports = 2, .addresses = 8}, {.marking = {.from_bytes = 3000}});
  for (int i = 0; i < 10; ++i) {
    Packet packet = packet_to(1, 0, 1000);
    packet.ecn = Ecn::ect1;
    at.arrive(packet, 0, at_ns(0));
    CHECK((packet.ecn == Ecn::ce) == (i > 3));
  }
  CHECK(at.counters(1, 0).marked == 6);
  // At 6999 ns the seventh packet is still on the line, at 8000 ns only the last two packets and
  // the new one are there.
  Packet packet = packet_to(1, 0, 1000);
  packet.ecn = Ecn::ect1;
  at.arrive(packet, 0, at_ns(6999));
  CHECK(packet.ecn == Ecn::ce);
  packet.ecn = Ecn::ect1;
  at.arrive(packet, 0, at_ns(8000));
  CHECK(packet.ecn == Ecn::ect1);
}

TEST_CASE("between two thresholds the part of marked packets rises") {
  Switch at =
      switch_of_hosts({.ports = 2, .addresses = 8},
                      {.bytes_per_second = 1'000'000'000'000,
                       .marking = {.from_bytes = 200, .all_bytes = 1000, .most_chance = 0.5}});
  for (const uint32_t queue : {200u, 300u, 600u, 900u, 1001u}) {
    const uint64_t before = at.counters(1, 0).marked;
    for (int i = 0; i < 10'000; ++i) {
      // The queue is empty before, and again after each pair of packets.
      const Time now = at_ns(int64_t{queue} * 100'000 + i * 10);
      Packet first = packet_to(1, 0, queue);
      Packet second = packet_to(1, 0, 1);
      second.ecn = Ecn::ect0;
      at.arrive(first, 0, now);
      at.arrive(second, 0, now);
    }
    const double part = static_cast<double>(at.counters(1, 0).marked - before) / 10'000;
    const double expected = queue > 1000 ? 1 : (queue - 200) / 800.0 * 0.5;
    CHECK(std::abs(part - expected) < 0.015);
  }
}

// A trunk of 8 ports of equal cost, from the switch's only host.
Switch switch_with_choice(uint32_t seed) {
  Switch at({.ports = 9, .addresses = 100, .packets = 1 << 20, .seed = seed});
  for (uint32_t port = 0; port < 9; ++port) at.connect(port, {.host = port == 0});
  at.routes().attach(1, 0);
  const uint16_t trunks[] = {1, 2, 3, 4, 5, 6, 7, 8};
  at.routes().set(50, 60, trunks);
  return at;
}

uint32_t port_of(Switch& at, uint8_t lbf, bool per_packet = false) {
  Packet packet{.source = 1, .destination = 50, .bytes = 100, .lbf = lbf, .per_packet = per_packet};
  return at.arrive(packet, 0, at_ns(0)).port;
}

TEST_CASE("packets of a flow take one of the ports of equal cost, flows spread over all") {
  Switch at = switch_with_choice(1);
  std::array<int, 9> flows{};
  for (unsigned lbf = 0; lbf < 256; ++lbf) {
    const uint32_t port = port_of(at, static_cast<uint8_t>(lbf));
    ++flows[port];
    for (int i = 0; i < 3; ++i) CHECK(port_of(at, static_cast<uint8_t>(lbf)) == port);
  }
  for (uint32_t port = 1; port < 9; ++port) CHECK(flows[port] > 15);
  // Switches choose independently of each other.
  Switch other = switch_with_choice(2);
  int equal = 0;
  for (unsigned lbf = 0; lbf < 256; ++lbf) {
    equal += port_of(at, static_cast<uint8_t>(lbf)) == port_of(other, static_cast<uint8_t>(lbf));
  }
  CHECK(equal < 64);
}

TEST_CASE("packets that may take any path spread evenly over the ports of equal cost") {
  Switch at = switch_with_choice(1);
  std::array<int, 9> packets{};
  for (int i = 0; i < 8000; ++i) ++packets[port_of(at, 0, true)];
  for (uint32_t port = 1; port < 9; ++port) CHECK(std::abs(packets[port] - 1000) < 120);
}

TEST_CASE("only the flows of a port that is down take another one") {
  Switch at = switch_with_choice(1);
  std::array<uint32_t, 256> before{};
  for (unsigned lbf = 0; lbf < 256; ++lbf) before[lbf] = port_of(at, static_cast<uint8_t>(lbf));
  std::array<Packet, 4> lost;
  CHECK(at.take_down(3, at_ns(1), lost) == 0);
  std::set<uint32_t> instead;
  for (unsigned lbf = 0; lbf < 256; ++lbf) {
    const uint32_t port = port_of(at, static_cast<uint8_t>(lbf));
    if (before[lbf] != 3) CHECK(port == before[lbf]);
    if (before[lbf] == 3) instead.insert(port);
  }
  CHECK(instead.size() > 3);
  CHECK_FALSE(instead.contains(3));
  at.bring_up(3, at_ns(2));
  for (unsigned lbf = 0; lbf < 256; ++lbf) {
    CHECK(port_of(at, static_cast<uint8_t>(lbf)) == before[lbf]);
  }
  for (uint32_t port = 1; port < 9; ++port) at.take_down(port, at_ns(3), lost);
  Packet packet{.source = 1, .destination = 50, .bytes = 100};
  CHECK(at.arrive(packet, 0, at_ns(3)).drop == Drop::port_down);
}

TEST_CASE("only the flows of a port that is avoided take another one, while there is one") {
  Switch at = switch_with_choice(1);
  std::array<uint32_t, 256> before{};
  for (unsigned lbf = 0; lbf < 256; ++lbf) before[lbf] = port_of(at, static_cast<uint8_t>(lbf));
  const auto check_all = [&](auto&& as_expected) {
    for (unsigned lbf = 0; lbf < 256; ++lbf) {
      CHECK(as_expected(before[lbf], port_of(at, static_cast<uint8_t>(lbf))));
    }
  };
  at.routes().avoid(3, true);
  check_all([](uint32_t was, uint32_t is) { return was == 3 ? is != 3 : is == was; });
  // A port that is down is of no use, and one that is avoided is better than that.
  std::array<Packet, 4> lost;
  for (uint32_t port = 1; port < 9; ++port) {
    if (port != 3) CHECK(at.take_down(port, at_ns(1), lost) == 0);
  }
  check_all([](uint32_t, uint32_t is) { return is == 3; });
  for (uint32_t port = 1; port < 9; ++port) at.bring_up(port, at_ns(2));
  // If all are avoided, none is.
  for (uint32_t port = 1; port < 9; ++port) at.routes().avoid(port, true);
  check_all([](uint32_t was, uint32_t is) { return is == was; });
  for (uint32_t port = 1; port < 9; ++port) at.routes().avoid(port, false);
  check_all([](uint32_t was, uint32_t is) { return is == was; });
}

TEST_CASE("the packets in the queues of a port that goes down are dropped and counted") {
  for (const Keeps keeps : {Keeps::until_decided, Keeps::until_collected}) {
    Switch at = switch_of_hosts({.ports = 2, .lanes = 2, .addresses = 8, .keeps = keeps});
    for (int i = 0; i < 10; ++i) {
      Packet packet = packet_to(1, 0, 100, static_cast<uint8_t>(i % 2));
      CHECK(at.arrive(packet, 0, at_ns(0)).drop == Drop::none);
    }
    std::array<Packet, 4> lost;
    size_t returned = 0;
    while (const size_t count = at.take_down(1, at_ns(50), lost)) returned += count;
    CHECK(drops_of(at, 1, Drop::port_down) == 10);
    CHECK(at.counters(1).recalled == (keeps == Keeps::until_decided ? 1 : 0));
    CHECK(returned == 10 - at.counters(1).recalled);
    CHECK(at.used_bytes() == 0);
    CHECK(at.due(1) == never);

    Packet packet = packet_to(1, 0, 100);
    CHECK(at.arrive(packet, 0, at_ns(60)).drop == Drop::port_down);
    CHECK(at.arrive(packet = packet_to(0, 1, 100), 1, at_ns(60)).drop == Drop::port_down);
    at.bring_up(1, at_ns(70));
    packet = packet_to(1, 0, 100);
    at.arrive(packet, 0, at_ns(80));
    at.settle(1, at_ns(180));
    Departure departure;
    if (keeps == Keeps::until_collected) CHECK(at.collect(1, at_ns(180), departure));
    CHECK(at.counters(1, 0).packets + at.counters(1, 1).packets == 1);
  }
}

TEST_CASE("the share of a queue shrinks while others fill the buffer") {
  Switch at = switch_of_hosts({.ports = 3, .addresses = 8, .buffer_bytes = 12'000, .share = 1});
  const auto fill = [&](uint32_t port) {
    int count = 0;
    for (Packet packet = packet_to(port, 2, 100); at.arrive(packet, 2, at_ns(0)).drop == Drop::none;
         packet = packet_to(port, 2, 100)) {
      ++count;
    }
    return count;
  };
  // A queue gets as much as it leaves free.
  CHECK(fill(0) == 60);
  CHECK(fill(1) == 30);
  CHECK(drops_of(at, 0, Drop::queue_full) == 1);
}

TEST_CASE("lanes in turn send the same bytes while they have packets") {
  Switch at =
      switch_of_hosts({.ports = 2, .lanes = 3, .addresses = 8, .service = Service::round_robin});
  // One lane has large packets, and one begins late: it does not catch up what it missed.
  const auto add = [&](uint8_t lane, uint32_t bytes, int count, Time now) {
    for (int i = 0; i < count; ++i) {
      Packet packet = packet_to(1, 0, bytes, lane);
      REQUIRE(at.arrive(packet, 0, now).drop == Drop::none);
    }
  };
  add(0, 100, 1000, at_ns(0));
  add(1, 1000, 100, at_ns(0));
  const auto serve_until = [&](Time until) {
    Departure departure;
    while (at.due(1) <= until) at.decide(1, at.due(1), departure);
    at.settle(1, until);
  };
  const auto sent = [&](uint32_t lane) { return static_cast<int>(at.counters(1, lane).bytes); };
  serve_until(at_ns(20'000));
  CHECK(std::abs(sent(0) - sent(1)) <= 1000);
  add(2, 500, 100, at_ns(20'000));
  serve_until(at_ns(50'000));
  CHECK(std::abs(sent(0) - sent(1)) <= 1000);
  CHECK(std::abs(sent(2) - 10'000) <= 1000);
}

// Sends packets that ask for more at twice the rate of a port, and returns the last one that left.
Packet overload(Switch& at, uint32_t to) {
  Departure departure;
  for (int i = 0; i < 2000; ++i) {
    Packet packet = packet_to(0, 0, 4096);
    packet.destination = to;
    packet.signal = {.increase = true, .hint = 128};
    const Arrival arrival = at.arrive(packet, 0, at_ns(i * 2048));
    if (arrival.departs != never) departure = {packet, arrival.departs};
    while (at.due(arrival.port) <= at_ns(i * 2048)) {
      at.decide(arrival.port, at.due(arrival.port), departure);
    }
  }
  return departure.packet;
}

TEST_CASE("the meter of a port marks packets as congested, at a host's port as the last hop") {
  for (const char* meter : {"caqm_r", "caqm_w"}) {
    INFO(meter);
    Switch at = switch_with_trunk(
        {.ports = 4, .addresses = 20, .packet_bytes = 4096, .meter = meter, .seed = 1});
    for (const uint32_t port : {1u, trunk_port}) {
      const Packet last = overload(at, port == trunk_port ? 10 : port + 1);
      CHECK(last.signal.switched);
      CHECK(last.signal.congested);
      CHECK_FALSE(last.signal.increase);
      CHECK(last.signal.last_hop == (port != trunk_port));
      CHECK(at.counters(port, 0).congested > 0);
    }
  }
}

TEST_CASE("meters reckon with full packets, which are smaller than the largest that is accepted") {
  for (const char* meter : {"caqm_r", "caqm_w"}) {
    INFO(meter);
    const auto outcome = [&](uint32_t largest, uint32_t full) {
      Switch at = switch_with_trunk({.ports = 4,
                                     .addresses = 20,
                                     .packet_bytes = largest,
                                     .full_packet_bytes = full,
                                     .meter = meter,
                                     .seed = 1});
      overload(at, 2);
      return at.counters(1, 0).congested;
    };
    CHECK(outcome(9216, 4096) == outcome(4096, 0));
    CHECK(outcome(9216, 0) != outcome(4096, 0));
  }
}

TEST_CASE("a switch takes away answers that a host forged, and keeps those of switches") {
  const congestion::Signal forged{
      .congested = true, .last_hop = true, .hint = 7, .switch_queue = 9};
  for (const char* meter : {"caqm_r", "caqm_w", "none"}) {
    INFO(meter);
    Switch at = switch_with_trunk(
        {.ports = 4, .addresses = 20, .packet_bytes = 4096, .meter = meter, .seed = 1});
    Packet of_host = packet_to(1, 0, 64);
    of_host.signal = forged;
    CHECK(at.arrive(of_host, 0, at_ns(0)).drop == Drop::none);
    CHECK_FALSE(of_host.signal.congested);
    CHECK_FALSE(of_host.signal.last_hop);
    CHECK(of_host.signal.switch_queue == 0);
    Packet of_switch = packet_to(2, 0, 64);
    of_switch.source = 10;
    of_switch.signal = forged;
    CHECK(at.arrive(of_switch, trunk_port, at_ns(0)).drop == Drop::none);
    CHECK(of_switch.signal.congested);
    CHECK(of_switch.signal.switch_queue >= 9);
  }
}

TEST_CASE("the text that names the meter may end before the switch") {
  std::string meter = "caqm_r";
  Switch at = switch_of_hosts({.ports = 2, .addresses = 8, .meter = meter});
  meter = "gone";
  at.connect(1, {.bytes_per_second = 1'000'000'000, .host = true});
  CHECK(at.settings().meter == "caqm_r");
}

TEST_CASE("a port without a rate, and a switch without meters, leave signals as they are") {
  const congestion::Signal asked{.increase = true, .hint = 7};
  for (const char* meter : {"none", "caqm_r"}) {
    Switch at = switch_of_hosts({.ports = 2, .addresses = 8, .meter = meter});
    if (std::string_view(meter) != "none") at.connect(1, {.bytes_per_second = 0, .host = true});
    Packet packet = packet_to(1, 0, 1000);
    packet.signal = asked;
    at.arrive(packet, 0, at_ns(0));
    CHECK(packet.signal == asked);
  }
}

TEST_CASE("counters tell the queues that packets have met") {
  Switch at = switch_of_hosts({.ports = 2, .addresses = 8, .histograms = true});
  for (const uint32_t bytes : {1u, 2u, 5u, 1000u}) {
    Packet packet = packet_to(1, 0, bytes);
    at.arrive(packet, 0, at_ns(0));
  }
  // The queues were 0, 1, 3 and 8 bytes.
  const QueueHistogram& histogram = *at.histogram(1, 0);
  for (const size_t bucket : {0u, 1u, 2u, 4u}) CHECK(histogram[bucket] == 1);
  CHECK(queue_quantile(histogram, 0.5) == 1);
  CHECK(queue_quantile(histogram, 0.75) == 3);
  CHECK(queue_quantile(histogram, 0.76) == 15);
  CHECK(queue_quantile(QueueHistogram{}, 0.5) == 0);
  CHECK(at.counters(1, 0).least_queue == 0);
  CHECK(at.counters(1, 0).most_queue == 8);
  at.restart_extremes();
  Packet packet = packet_to(1, 0, 10);
  at.arrive(packet, 0, at_ns(8));
  CHECK(at.counters(1, 0).least_queue == 1000);
  CHECK(at.counters(1, 0).most_queue == 1000);
}

}  // namespace
}  // namespace urma::fabric
