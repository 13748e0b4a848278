// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "urma/core/time.h"

namespace urma::transport {

// Decides whether a congested route of a channel has to send less, or whether the channel only
// steers traffic to its other routes (UB 6.6.1.4): one congested path must not throttle a channel
// that has better ones. A route sends less if more than half of the acknowledgements of the last
// round trip report congestion, or if there is no route to steer to. It knows neither routes nor
// windows. `RouteWindows` owns it.
class Steering {
 public:
  // An acknowledgement has arrived. `congested`: it reports marked packets.
  void note(bool congested, Duration round_trip, Time now) {
    if (now >= round_end_) {
      last_ = now < round_end_ + round_trip ? present_ : Count{};
      present_ = {};
      round_end_ = now + round_trip;
    }
    ++present_.all;
    present_.congested += congested;
  }
  // Returns whether a congested route has to send less. `usable`, `congested`: the number of usable
  // routes, and of those among them that have reported congestion within a round trip.
  bool cuts(unsigned usable, unsigned congested) const {
    const unsigned all = present_.all + last_.all;
    // One more than half: otherwise, if every second one reports congestion, the latest decides.
    const bool most = all >= usable && 2 * (present_.congested + last_.congested) > all + 1;
    return most || congested >= usable;
  }

 private:
  // The number of acknowledgements in one round trip.
  struct Count {
    uint32_t all = 0;
    uint32_t congested = 0;
  };

  Time round_end_{};
  Count present_;
  Count last_;
};

}  // namespace urma::transport
