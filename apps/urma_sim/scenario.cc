// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_sim/scenario.h"

#include <algorithm>

#include "base/flat_map.h"
#include "congestion/port_meter.h"
#include "drivers/sim/port.h"

namespace urma::apps::simulation {
namespace {

using namespace std::chrono_literals;
using Shape = Switches::Shape;

constexpr uint64_t gigabit = 125'000'000;  // bytes per second
constexpr uint32_t ack_bytes = 64;         // about, on the line
constexpr int64_t most_over_ideal = 10;    // flows that end may take so much longer
constexpr uint32_t leaf_hosts = 8, spines = 4;
// From so many senders on, the first queue takes long to drain.
constexpr uint32_t many_senders = 512;

// Returns the delay of each cable on a way of `cables` cables on which a packet and its
// acknowledgement take `rtt`; negative if sending alone takes longer.
Duration delay_for(const Choice& choice, Duration rtt, int64_t cables) {
  const Duration sent = cables * choice.sending_time(mtu + ack_bytes);
  return (rtt - sent) / (2 * cables);
}

// Returns the ECN marks that a controller is made for, scaled to the line.
fabric::Marking marks_for(const Choice& choice) {
  const double scale = static_cast<double>(choice.bytes_per_second) / 3.125e9;  // 25 Gb/s
  if (choice.cc == "dcqcn") {
    return {.from_bytes = static_cast<uint64_t>(100e3 * scale),
            .all_bytes = static_cast<uint64_t>(400e3 * scale),
            .most_chance = 0.2};
  }
  if (choice.cc == "ldcp") {
    const double bdp = choice.carried(choice.rtt);
    return {.from_bytes = static_cast<uint64_t>(bdp / 3), .all_bytes = static_cast<uint64_t>(bdp)};
  }
  return {};
}

Plan base_plan(const Choice& choice) {
  Plan plan;
  plan.duration = choice.duration > 0s ? choice.duration : choice.rounds * choice.round();
  plan.capacity = choice.bytes_per_second;
  plan.warm_up = (choice.senders >= many_senders ? 240 : 40) * choice.round();
  plan.switches.shape = choice.shape;
  plan.switches.each_port.marking = marks_for(choice);
  plan.switches.each_port.queue_bytes = uint64_t{4} << 20;
  plan.switches.base_rtt = choice.rtt;
  plan.switches.packet_bytes = drivers::sim::packet_bytes(mtu);
  plan.switches.lanes = choice.lanes;
  plan.switches.seed = static_cast<uint32_t>(choice.seed);
  plan.switches.trunk = {choice.bytes_per_second, 1us};
  if (congestion::find_port_meter(choice.cc) != nullptr) plan.switches.meter = choice.cc;
  return plan;
}

// Flows start within 100 ns, in an order that depends on the seed.
Duration start_of(const Choice& choice, uint64_t flow) {
  return Duration(static_cast<int64_t>(mix_bits(choice.seed << 32 | flow) % 100));
}

// All other hosts send to host 0.
Plan incast(const Choice& choice) {
  Plan plan = base_plan(choice);
  int64_t cables = 2;
  if (choice.shape == Shape::leaf_spine) {
    // Cables to spines have twice the rate of hosts, so that only the receiver's is a bottleneck.
    plan.switches.leaves = (choice.senders + leaf_hosts) / leaf_hosts;
    plan.switches.leaf_hosts = leaf_hosts;
    plan.switches.spines = spines;
    cables = 4;
  }
  const Duration delay = delay_for(choice, choice.rtt, cables);
  if (cables == 4) plan.switches.trunk = {2 * choice.bytes_per_second, delay};
  plan.hosts.assign(choice.senders + 1, {choice.bytes_per_second, delay});
  for (uint32_t i = 0; i < choice.senders; ++i) {
    plan.flows.push_back(
        {.from = i + 1, .to = 0, .start = start_of(choice, i), .fair_share = 1.0 / choice.senders});
  }
  return plan;
}

Plan joins(const Choice& choice) {
  Plan plan = incast(choice);
  plan.phases = true;
  plan.warm_up = {};
  const Duration phase = phase_rounds * choice.round();
  for (uint32_t i = 0; i < choice.senders; ++i) {
    plan.flows[i].start = i * phase;
    plan.flows[i].stop = (choice.senders + i) * phase;
    plan.flows[i].fair_share = 0;
  }
  plan.duration = 2 * choice.senders * phase;
  return plan;
}

// One flow over three hops, which have 1, 2 and 4 other flows.
Plan parking_lot(const Choice& choice) {
  Plan plan = base_plan(choice);
  constexpr uint32_t hops = 3, pairs = 4;
  plan.switches.hops = hops;
  plan.switches.pairs = pairs;
  // All round trips take the same time: the flow over three hops has short cables at its ends.
  const Duration short_way = delay_for(choice, choice.rtt, 3);
  const Duration long_way = delay_for(choice, choice.rtt, 5);
  plan.switches.trunk = {choice.bytes_per_second, long_way};
  plan.hosts.assign(2 + 2 * hops * pairs,
                    {choice.bytes_per_second, short_way + (short_way - long_way) / 2});
  for (uint32_t i = 0; i < 2; ++i) plan.hosts[i].delay = long_way;
  const fabric::ParkingLot lot{.hops = hops, .pairs = pairs};
  plan.flows.push_back({.from = 0, .to = 1, .start = start_of(choice, 0), .fair_share = 0.2});
  for (uint32_t hop = 0; hop < hops; ++hop) {
    for (uint32_t pair = 0; pair < 1u << hop; ++pair) {
      const uint32_t host = lot.crossing(hop, pair);
      plan.flows.push_back({.from = host,
                            .to = host + 1,
                            .start = start_of(choice, plan.flows.size()),
                            .fair_share = 0.8 / (1u << hop)});
    }
  }
  for (const fabric::Cable& cable : fabric::parking_lot(lot).cables) {
    const uint32_t last = static_cast<uint32_t>(plan.hosts.size()) + hops;
    if (cable.a.node == last - 1 && cable.b.node == last) plan.trunk = cable.a;
  }
  plan.warm_up = 100 * choice.round();
  plan.capacity = 0;
  return plan;
}

// Round trips of a half, one and four times the usual one.
Plan mixed(const Choice& choice) {
  Plan plan = incast(choice);
  const Duration shortest = choice.rtt / 2;
  plan.hosts[0].delay = delay_for(choice, shortest, 2);
  for (uint32_t i = 0; i < choice.senders; ++i) {
    const Duration rtt = choice.rtt * (i % 3 == 0 ? 1 : i % 3 == 1 ? 2 : 8) / 2;
    plan.hosts[i + 1].delay = plan.hosts[0].delay + (rtt - shortest) / 2;
  }
  plan.warm_up = 100 * choice.round();
  return plan;
}

// All senders are at the first of two switches, and the receiver behind the second one, which has
// no port meter and half the rate.
Plan foreign_hop(const Choice& choice) {
  Plan plan = base_plan(choice);
  plan.switches.hops = 1;
  plan.switches.pairs = choice.senders;
  plan.switches.unmetered = 1;
  const Duration delay = delay_for(choice, choice.rtt, 3);
  plan.switches.trunk = {choice.bytes_per_second, delay};
  plan.hosts.assign(2 + 2 * choice.senders, {choice.bytes_per_second, delay});
  plan.capacity = plan.hosts[1].bytes_per_second = choice.bytes_per_second / 2;
  plan.observed = 1;
  const fabric::ParkingLot lot{.hops = 1, .pairs = choice.senders};
  for (uint32_t i = 0; i < choice.senders; ++i) {
    plan.flows.push_back({.from = lot.crossing(0, i),
                          .to = 1,
                          .start = start_of(choice, i),
                          .fair_share = 0.5 / choice.senders});
  }
  return plan;
}

Plan no_switch(const Choice& choice) {
  Plan plan = incast(choice);
  plan.switches.meter = "none";
  return plan;
}

// Two hosts send as fast as they may, beside others that write small messages: together these have
// a fifth of the cable's rate, but each far less than its share.
Plan small_beside_bulk(const Choice& choice) {
  constexpr uint64_t small_bytes = 1000;
  const uint32_t bulk = std::min(choice.senders, 2u);
  const uint32_t small = choice.senders - bulk;
  Plan plan = incast(choice);
  const Duration each = 5 * choice.sending_time(small_bytes) * small;
  for (uint32_t i = 0; i < choice.senders; ++i) {
    Flow& flow = plan.flows[i];
    flow.fair_share = i < bulk ? (small > 0 ? 0.8 : 1.0) / bulk : 0;
    if (i < bulk) continue;
    flow.start = each * i / choice.senders;
    flow.each = each;
    flow.bytes = small_bytes;
  }
  return plan;
}

Plan only_marks(const Choice& choice) {
  Plan plan = no_switch(choice);
  plan.switches.each_port.marking = {.from_bytes = 8 * mtu};
  return plan;
}

constexpr Choice hundred{
    .senders = 8, .bytes_per_second = 100 * gigabit, .rtt = 8us, .message_bytes = 16 << 10};

constexpr Choice with(Choice choice, uint32_t senders) {
  choice.senders = senders;
  return choice;
}
constexpr Choice four_hundred() {
  Choice choice = hundred;
  choice.bytes_per_second = 400 * gigabit;
  choice.rtt = 4us;
  return choice;
}
constexpr Choice finite() {
  Choice choice = with(hundred, 16);
  choice.flow_bytes = 2 << 20;
  choice.message_bytes = 64 << 10;
  return choice;
}
constexpr Choice small_messages() {
  Choice choice = hundred;
  choice.message_bytes = mtu;
  return choice;
}
constexpr Choice longer(Choice choice) {
  choice.rounds = 800;
  return choice;
}

}  // namespace

std::span<const Scenario> scenarios() {
  static const std::vector<Shape> wide{Shape::star, Shape::leaf_spine};
  static const std::vector<Shape> only_star{Shape::star};
  static const std::vector<Shape> only_parking{Shape::parking};
  static const std::vector<Scenario> all{
      {"I1", "incast: all hosts send to one, and the flows do not end", wide, hundred, 1000,
       incast},
      {"I2", "the same at 400 Gb/s with round trips of 4 us", wide, four_hundred(), 1000, incast},
      {"I3", "incast of flows that end", wide, finite(), 1000, incast},
      {"J1", "flows join and leave, one in each 100 rounds", only_star, small_messages(), 16,
       joins},
      {"L1", "a parking lot: one flow over three hops, and 1, 2 and 4 over one of them",
       only_parking, longer(with(hundred, 8)), 8, parking_lot},
      {"M1", "incast with round trips of a half, one and four times --rtt", only_star,
       longer(with(hundred, 6)), 126, mixed},
      {"S1", "two hosts send to one beside others that write 1000 B at a time", wide,
       with(hundred, 52), 1000, small_beside_bulk},
      {"X1", "incast over a switch, and then a slower one without port meters", only_parking,
       with(hundred, 8), 128, foreign_hop},
      {"X2", "incast over a switch without port meters and marks", wide, hundred, 1000, no_switch},
      {"X3", "incast over a switch that only marks, by ECN", wide, hundred, 1000, only_marks},
  };
  return all;
}

bool is_possible(const Plan& plan) {
  const auto arrives = [](const HostCable& cable) { return cable.delay >= Duration{}; };
  return plan.switches.trunk.delay >= Duration{} && std::ranges::all_of(plan.hosts, arrives);
}

Plan plan_of(const Scenario& scenario, const Choice& choice) {
  Plan plan = scenario.plan(choice);
  for (size_t i = 0; i < plan.flows.size(); ++i) {
    plan.hosts[plan.flows[i].from].lane = static_cast<uint32_t>(i % choice.lanes);
    // Lanes are not meant to be fair to each other.
    if (choice.lanes > 1) plan.flows[i].fair_share = 0;
  }
  if (choice.flow_bytes > 0 && choice.duration == Duration{}) {
    plan.duration =
        most_over_ideal * (choice.rtt + choice.sending_time(plan.flows.size() * choice.flow_bytes));
  }
  return plan;
}

}  // namespace urma::apps::simulation
