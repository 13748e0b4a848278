// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "urma/core/time.h"

namespace urma::transport {

// Estimates the round-trip time of a channel and its variation, by the filter of RFC 6298, and
// derives the time-out. It does not know packets or when they were sent: its caller adds samples.
class RttEstimator {
 public:
  // The longest time-out, unless the path itself needs more.
  static constexpr Duration most_timeout = std::chrono::milliseconds(200);
  // The longest time-out on any path.
  static constexpr Duration longest_timeout = std::chrono::seconds(1);

  // `first`: the round trip measured during set-up; zero if none was.
  explicit RttEstimator(Duration first)
      : smoothed_(first == Duration{} ? presumed : first),
        variation_(smoothed_ / 2),
        least_(first) {}

  void add(Duration sample) {
    const Duration error = sample > smoothed_ ? sample - smoothed_ : smoothed_ - sample;
    variation_ += (error - variation_) / 4;
    smoothed_ += (sample - smoothed_) / 8;
    least_ = least_ == Duration{} ? sample : std::min(least_, sample);
  }

  // Takes this sample as the first of a path (RFC 6298, 2.2). The shortest one remains.
  void restart(Duration sample) {
    add(sample);
    smoothed_ = sample;
    variation_ = sample / 2;
  }

  Duration smoothed() const { return smoothed_; }
  // Returns the shortest round trip that was measured so far; zero if none was.
  Duration least() const { return least_; }

  // Returns the time-out that follows `tries` time-outs in a row: it is at least `least`, and each
  // of these time-outs doubles it.
  Duration timeout(unsigned tries, Duration least) const {
    const Duration once = std::max(smoothed_ + 4 * variation_, least);
    // Doubled time-outs stay well below the 1 s of silence after which the peer is declared dead,
    // unless the round trip itself is longer.
    const Duration most = std::clamp(once, most_timeout, longest_timeout);
    return std::min(once * (int64_t{1} << std::min(tries, 8u)), most);
  }

 private:
  // The round trip until one has been measured.
  static constexpr Duration presumed = std::chrono::milliseconds(1);

  Duration smoothed_;
  Duration variation_;
  Duration least_;
};

}  // namespace urma::transport
