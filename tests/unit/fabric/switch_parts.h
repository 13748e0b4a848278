// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/prng.h"
#include "fabric/switch.h"

namespace urma::fabric {

inline Time at_ns(int64_t ns) { return Time(Duration(ns)); }

// A switch whose port `n` leads to a host with the address `n` + 1, at 1 byte per nanosecond unless
// `each_port` has another rate.
inline Switch switch_of_hosts(const SwitchSettings& settings, SwitchPort each_port = {}) {
  Switch made(settings);
  each_port.host = true;
  if (each_port.bytes_per_second == 0) each_port.bytes_per_second = 1'000'000'000;
  for (uint32_t port = 0; port < settings.ports; ++port) {
    made.connect(port, each_port);
    made.routes().attach(port + 1, port);
  }
  return made;
}

inline Packet packet_to(uint32_t port, uint32_t from, uint32_t bytes, uint8_t lane = 0) {
  return {.source = from + 1, .destination = port + 1, .bytes = bytes, .lane = lane};
}

inline uint64_t drops_of(const Switch& at, uint32_t port, Drop reason) {
  return at.counters(port).drops[static_cast<size_t>(reason)];
}

// The sums of a switch's counters over its ports and lanes.
struct SwitchSum {
  explicit SwitchSum(Switch& at, Time now) {
    for (uint32_t port = 0; port < at.settings().ports; ++port) {
      at.settle(port, now);
      const PortCounters& counters = at.counters(port);
      received_packets += counters.received_packets;
      received_bytes += counters.received_bytes;
      for (const uint64_t drops : counters.drops) dropped_packets += drops;
      dropped_bytes += counters.dropped_bytes;
      recalled += counters.recalled;
      for (uint32_t lane = 0; lane < at.settings().lanes; ++lane) {
        left_packets += at.counters(port, lane).packets;
        left_bytes += at.counters(port, lane).bytes;
        queued_bytes += at.queue_bytes(port, lane);
      }
    }
  }

  uint64_t received_packets = 0;
  uint64_t received_bytes = 0;
  uint64_t left_packets = 0;
  uint64_t left_bytes = 0;
  uint64_t dropped_packets = 0;
  uint64_t dropped_bytes = 0;
  uint64_t recalled = 0;
  uint64_t queued_bytes = 0;
};

}  // namespace urma::fabric
