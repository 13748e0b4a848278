// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace urma::fabric {

// The reasons for which a switch drops a packet.
enum class Drop : uint8_t {
  none,
  bad_size,             // empty, or larger than the switch forwards
  bad_lane,             // the switch does not have this lane
  spoofed_source,       // the port has not claimed the packet's source, or another port has
  hop_limit,            // too many switches have forwarded it: a loop of routes
  unknown_destination,  // no route leads there
  port_down,            // the port is down, or went down while the packet was in its queue
  queue_full,           // the queue has its share of the buffer
  buffer_full,          // all queues together fill the buffer
  no_slot,              // the switch holds as many packets as it can describe
};
inline constexpr size_t drop_reasons = 10;

constexpr std::string_view name_of(Drop reason) {
  constexpr std::string_view names[drop_reasons] = {"none",        "bad_size",
                                                    "bad_lane",    "spoofed_source",
                                                    "hop_limit",   "unknown_destination",
                                                    "port_down",   "queue_full",
                                                    "buffer_full", "no_slot"};
  return names[static_cast<size_t>(reason)];
}

}  // namespace urma::fabric
