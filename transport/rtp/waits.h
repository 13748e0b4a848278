// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "base/timer_wheel.h"
#include "urma/core/time.h"

namespace urma::transport {

// How long one end of a channel waits for the other. All of it follows from the round trip and from
// one fact of the port, how late an end may run (PortFacts::scheduling_delay). The peer is taken to
// run as late as this end: set-up does not say it, and both are on the same kind of network.
class Waits {
 public:
  explicit Waits(Duration lateness)
      : lateness_ns_(static_cast<uint32_t>(std::clamp<Duration::rep>(
            lateness.count(), 0, std::numeric_limits<uint32_t>::max()))) {}

  Duration lateness() const { return Duration(lateness_ns_); }

  // Returns for how long this end holds an acknowledgement back, so that it serves for more
  // packets. An end that often runs late would send one for each packet if it held it back for a
  // shorter time than it sleeps.
  Duration ack_delay(Duration rtt) const {
    return std::clamp(rtt / 4, std::min(lateness() / 10, most_least_delay), most_ack_delay);
  }
  // Returns for how long the peer may hold an acknowledgement back, or not run, before it is asked.
  Duration answer_delay(Duration rtt) const {
    const Duration least = 2 * lateness() / 5;
    return std::clamp(rtt / 4, least, std::max(least, most_ack_delay));
  }
  // Returns the shortest time-out. It is at least as long as the peer may run late, because a
  // time-out without a loss costs a window. If the peer is punctual, it is two round trips, and a
  // few ticks of the timers that measure them.
  Duration least_timeout(Duration rtt) const {
    return std::max(lateness(), std::min(2 * rtt + 4 * TimerWheel::tick, most_least_timeout));
  }
  // Returns after how long an answer shows that the peer runs later than it should.
  Duration late_after() const { return std::max(lateness(), most_least_timeout); }
  // Returns by how much packets of different routes overtake each other: by as much as the paths
  // differ, and by the time for which an end leaves packets of one path unread.
  Duration overtaking(Duration rtt) const { return std::max(2 * rtt, lateness()); }

 private:
  static constexpr Duration most_least_delay = std::chrono::microseconds(100);
  // The longest time for which a receiver holds an acknowledgement back, on whatever port.
  static constexpr Duration most_ack_delay = std::chrono::microseconds(400);
  static constexpr Duration most_least_timeout = std::chrono::milliseconds(1);

  uint32_t lateness_ns_;
};

}  // namespace urma::transport
