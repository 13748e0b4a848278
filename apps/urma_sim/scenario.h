#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "drivers/sim/switches.h"

namespace urma::apps::simulation {

using drivers::sim::Switches;

// The values of a run: a scenario's usual ones, and those that the user changed.
struct Choice {
  std::string_view cc = "aimd";
  Switches::Shape shape = Switches::Shape::star;
  uint32_t senders = 0;
  uint64_t bytes_per_second = 0;  // of each cable
  Duration rtt{};                 // without queues, between two hosts
  uint64_t message_bytes = 0;     // of each write
  uint64_t flow_bytes = 0;        // 0: a flow has no end
  Duration duration{};            // that is measured; none if flows end
  uint32_t lanes = 1;             // of switches; the hosts that send take them in turn
  uint64_t seed = 1;

  double bdp() const {
    return static_cast<double>(bytes_per_second) * std::chrono::duration<double>(rtt).count();
  }
};

// One host writes to another, as fast as it may.
struct Flow {
  uint32_t from = 0;
  uint32_t to = 0;
  Duration start{};  // after the begin of the scenario
  Duration stop = Duration::max();
  double fair_share = 0;  // of the rate of a cable, by max-min fairness; 0: not known
};

// The cable of a host.
struct HostCable {
  uint64_t bytes_per_second = 0;
  Duration delay{};
  uint32_t lane = 0;  // of what the host sends
};

// Everything that a run needs.
struct Plan {
  Switches::Settings switches;
  std::vector<HostCable> hosts;  // by their numbers in the topology
  std::vector<Flow> flows;
  uint32_t observed = 0;                         // the host whose port is measured
  std::optional<fabric::Cable::End> trunk = {};  // the port that is measured instead
  Duration warm_up{};                            // before the measurement
  Duration duration{};
  uint64_t capacity = 0;  // bytes per second that all flows together can have
  bool phases = false;    // flows join and leave, one in each hundred round trips
};

// A row of the table of scenarios.
struct Scenario {
  std::string_view name;
  std::string_view summary;
  std::vector<Switches::Shape> shapes;  // that it can have, the usual one first
  Choice usual;
  uint32_t most_senders;
  Plan (*plan)(const Choice& choice);
};

std::span<const Scenario> scenarios();
// Returns the scenario's plan, with lanes for hosts and a duration for flows that end.
Plan plan_of(const Scenario& scenario, const Choice& choice);
// Returns false if a packet and its acknowledgement are sent for longer than the round trip.
bool is_possible(const Plan& plan);

// The largest payload of a packet, and the bytes of such a packet of a write on the line: with
// RTPH, BTAH, MAETAH, TVETAH and ICRC.
inline constexpr uint32_t mtu = 4096;
inline constexpr uint32_t packet_bytes = mtu + 16 + 8 + 16 + 4 + 4;
// J1: one flow joins, or later leaves, in each period of so many round trips.
inline constexpr int64_t phase_rounds = 100;

}  // namespace urma::apps::simulation
