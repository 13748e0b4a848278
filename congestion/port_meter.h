// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "congestion/signal.h"
#include "urma/core/time.h"

namespace urma::congestion {

// The switch's half of congestion control: measures what passes one egress port and virtual lane,
// and edits the signals of its packets. It neither tells flows apart nor holds packets. The switch
// owns it and calls it for each packet of that lane in the order of time; packets that take no part
// in congestion control are reported, too, with the default signal, because they load the port.
class PortMeter {
 public:
  // Each lane of each port of a switch has a meter, which must take less than 128 bytes.
  static constexpr size_t storage = 120;

  virtual ~PortMeter() = default;
  // Called for a packet that enters the queue, in which `queue_bytes` wait ahead of it.
  virtual Signal arrive(Time now, uint32_t bytes, uint64_t queue_bytes, Signal in) = 0;
  // Called for a packet that leaves the queue, in which `queue_bytes` remain.
  virtual Signal depart(Time now, uint32_t bytes, uint64_t queue_bytes, Signal in) = 0;
};

// The facts about a port that its meter is made with.
struct PortSettings {
  double bytes_per_second = 12.5e9;  // of the lane: the share of the port that it can have
  // The round trip without queues of the flows that pass. Flows with another one are treated
  // fairly, but the meter measures over this time.
  Duration base_rtt{8000};
  uint32_t packet_bytes = 4096;  // the largest packet
  uint32_t seed = 0;             // another one for each port, so that ports decide independently
  bool last_hop = false;         // the port leads to a host
};

// A row of the table of port meters.
struct PortMeterKind {
  std::string_view name;  // of the controller that it serves
  std::string_view summary;
  PortMeter* (*make)(void* storage, const PortSettings& settings);
  Metering metering;
  // `depart` edits packets, so a switch must not decide a departure before the line is free.
  bool edits_departures = false;
};

std::span<const PortMeterKind> port_meters();
// Returns null if no port meter has this name.
const PortMeterKind* find_port_meter(std::string_view name);

}  // namespace urma::congestion
