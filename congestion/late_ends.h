// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

namespace urma::congestion {

// Tells a queue from ends that run late, by the delays of the round trips that are neither of the
// path nor of a queue that switches report. A queue stands in all round trips; after an end was
// late, others are short again.
class LateEnds {
 public:
  // A round trip had this delay. `lateness`: how late an end may run, both in seconds. `target`:
  // the longest delay that is not a queue.
  void note(double delay, double lateness, double target) {
    if (lateness > 0) {
      const double steps = std::clamp(delay / lateness, 0.0, most) * steps_of_lateness;
      late_ = std::max(late_, static_cast<uint8_t>(steps));
    }
    if (delay > target) return;
    punctual_ = true;
    delayed_rounds_ = 0;
  }
  void begin_round() {
    late_ = static_cast<uint8_t>(late_ - (late_ + forgotten - 1) / forgotten);
    if (!punctual_ && delayed_rounds_ < many_rounds) ++delayed_rounds_;
    punctual_ = false;
  }

  // Returns the longest delay of the last rounds, in units of how late an end may run. On a machine
  // that has fewer processors than busy threads it is many of them.
  double longest() const { return late_ / steps_of_lateness; }
  // Returns whether the last rounds had no short round trip.
  bool all_late() const { return delayed_rounds_ == many_rounds; }

 private:
  static constexpr double most = 16, steps_of_lateness = UINT8_MAX / most;
  static constexpr uint8_t many_rounds = 2;
  static constexpr unsigned forgotten = 16;  // 1 / this of the longest delay, in each round

  uint8_t late_ = 0;
  uint8_t delayed_rounds_ : 2 = 0;
  bool punctual_ : 1 = false;  // a round trip of this round was short
};
static_assert(sizeof(LateEnds) == 2);

}  // namespace urma::congestion
