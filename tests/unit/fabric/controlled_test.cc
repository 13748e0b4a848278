// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tests/catch.h"
#include "tests/unit/fabric/controlled_flows.h"

namespace urma::fabric {
namespace {

using namespace std::chrono_literals;

constexpr CableKind hundred_gigabit{.bytes_per_second = 12'500'000'000, .delay = 1800ns};
constexpr double line_rate = 12.5e9;
constexpr Duration round_trip = 8us;

Network::Settings metered(const char* meter) {
  return {.switches = {.packet_bytes = ControlledFlows::mtu,
                       .buffer_bytes = uint64_t{1} << 30,
                       .meter = meter,
                       .base_rtt = round_trip}};
}

TEST_CASE("flows with explicit rates share a line evenly, behind a queue of a few packets") {
  for (const uint32_t senders : {2u, 8u, 32u}) {
    INFO(senders);
    Network network(star(senders + 1, hundred_gigabit), metered("caqm_r"));
    ControlledFlows flows(network, "caqm_r", round_trip);
    for (uint32_t i = 0; i < senders; ++i) flows.add(i + 1, 0, Time(1us), line_rate);
    flows.run(Time(40 * round_trip));
    const Switch& at = network.switches()[0];
    // In the first round trip each flow sends one packet before it knows of the others.
    CHECK(at.counters(0, 0).most_queue <= std::max(senders, 16u) * ControlledFlows::mtu);
    network.switches()[0].restart_extremes();
    for (uint32_t i = 0; i < senders; ++i) flows.take_delivered(i);

    flows.run(Time(240 * round_trip));
    double sum = 0;
    double squares = 0;
    for (uint32_t i = 0; i < senders; ++i) {
      const auto bytes = static_cast<double>(flows.take_delivered(i));
      sum += bytes;
      squares += bytes * bytes;
    }
    CHECK(sum / line_rate / std::chrono::duration<double>(200 * round_trip).count() > 0.95);
    CHECK(sum * sum / (squares * senders) > 0.999);
    CHECK(at.counters(0, 0).most_queue <= 16 * ControlledFlows::mtu);
  }
}

TEST_CASE("a flow over three hops with explicit rates gets the fair share of the busiest one") {
  const ParkingLot lot{.hops = 3,
                       .pairs = 4,
                       .host_cable = {.bytes_per_second = 12'500'000'000, .delay = 500ns},
                       .trunk_cable = {.bytes_per_second = 12'500'000'000, .delay = 500ns}};
  Network network(parking_lot(lot), metered("caqm_r"));
  ControlledFlows flows(network, "caqm_r", round_trip);
  // Beside the long flow, the hops have 1, 2 and 4 flows.
  flows.add(0, 1, Time(1us), line_rate);
  std::vector<uint32_t> hop_of{3};
  for (uint32_t hop = 0; hop < 3; ++hop) {
    for (uint32_t pair = 0; pair < 1u << hop; ++pair) {
      const uint32_t sender = lot.crossing(hop, pair);
      flows.add(sender, sender + 1, Time(1us), line_rate);
      hop_of.push_back(hop);
    }
  }
  flows.run(Time(200 * round_trip));
  for (uint32_t i = 0; i < hop_of.size(); ++i) flows.take_delivered(i);
  flows.run(Time(600 * round_trip));
  // Max-min fairness gives the long flow a fifth, and the others what it leaves.
  constexpr double fair[] = {0.8, 0.4, 0.2, 0.2};
  for (uint32_t i = 0; i < hop_of.size(); ++i) {
    const double share = static_cast<double>(flows.take_delivered(i)) / line_rate /
                         std::chrono::duration<double>(400 * round_trip).count();
    INFO("flow " << i);
    CHECK(share > fair[hop_of[i]] * 0.85);
    CHECK(share < fair[hop_of[i]] * 1.15);
  }
}

}  // namespace
}  // namespace urma::fabric
