// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "drivers/sim/switches.h"

namespace urma::apps::simulation {

using drivers::sim::Switches;

// The largest payload of a packet, the headers of a packet of a write (RTPH, BTAH, MAETAH and
// TVETAH), and the bytes of the largest one on the line, with its ICRC.
inline constexpr uint32_t mtu = 4096;
inline constexpr uint32_t header_bytes = 16 + 8 + 16 + 4;
inline constexpr uint32_t packet_bytes = mtu + header_bytes + 4;

// The values of a run: a scenario's usual ones, and those that the user changed.
struct Choice {
  std::string_view cc = "aimd";
  Switches::Shape shape = Switches::Shape::star;
  uint32_t senders = 0;
  uint64_t bytes_per_second = 0;  // of each cable
  Duration rtt{};                 // without queues, between two hosts
  uint64_t message_bytes = 0;     // of each write
  uint64_t flow_bytes = 0;        // 0: a flow has no end
  int64_t rounds = 400;           // that are measured
  Duration duration{};            // that is measured instead; if zero, the rounds decide
  uint32_t lanes = 1;             // of switches; the hosts that send take them in turn
  uint64_t seed = 1;

  // Returns how long a cable takes for so many bytes.
  Duration sending_time(uint64_t bytes) const {
    return Duration(static_cast<int64_t>(1e9 * static_cast<double>(bytes) /
                                         static_cast<double>(bytes_per_second)));
  }
  // Returns how many bytes a cable carries in a time.
  double carried(Duration time) const {
    return static_cast<double>(bytes_per_second) * std::chrono::duration<double>(time).count();
  }
  // Returns the time that takes as many packets as this one at 100 Gb/s, if cables are slower.
  Duration stretched(Duration time) const {
    return std::max(time,
                    sending_time(static_cast<uint64_t>(12.5 * static_cast<double>(time.count()))));
  }
  // Returns the unit of time of a scenario: a round trip, or the time of 24 packets if that is
  // longer. Otherwise the flows of a slow cable would be measured before each has sent a packet.
  Duration round() const { return std::max(rtt, sending_time(uint64_t{24} * packet_bytes)); }
};

// One host writes to another, as fast as it may.
struct Flow {
  uint32_t from = 0;
  uint32_t to = 0;
  Duration start{};  // after the begin of the scenario
  Duration stop = Duration::max();
  double fair_share = 0;  // of the rate of a cable, by max-min fairness; 0: not known
  // If not zero, it writes `bytes` each so long instead of as fast as it may.
  Duration each{};
  uint64_t bytes = 0;

  uint64_t message_bytes(const Choice& choice) const {
    return each > Duration{} ? bytes : choice.message_bytes;
  }
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

// J1: one flow joins, or later leaves, in each period of so many rounds.
inline constexpr int64_t phase_rounds = 100;

}  // namespace urma::apps::simulation
