#pragma once

#include <algorithm>

#include "urma/core/time.h"

namespace urma::transport {

// Smoothed round-trip time and its variation, and the time-out that follows (RFC 6298's filter).
class RttEstimator {
 public:
  // A spurious time-out costs a window; a receiver may hold an ack back for a quarter round trip,
  // and a busy machine may not run it for a while.
  static constexpr Duration least_timeout = std::chrono::milliseconds(1);
  static constexpr Duration most_timeout = std::chrono::milliseconds(200);
  static constexpr Duration longest_timeout = std::chrono::seconds(1);

  // `first`: the round trip of the set-up.
  explicit RttEstimator(Duration first) : smoothed_(first), variation_(first / 2), least_(first) {}

  void add(Duration sample) {
    const Duration error = sample > smoothed_ ? sample - smoothed_ : smoothed_ - sample;
    variation_ += (error - variation_) / 4;
    smoothed_ += (sample - smoothed_) / 8;
    least_ = std::min(least_, sample);
  }

  Duration smoothed() const { return smoothed_; }
  Duration least() const { return least_; }

  // After `tries` time-outs in a row; the first one is not below `least`.
  Duration timeout(unsigned tries, Duration least = least_timeout) const {
    const Duration once = std::max(smoothed_ + 4 * variation_, least);
    // Waits that grow stay short of the verdict, unless the path itself is that long.
    const Duration most = std::clamp(once, most_timeout, longest_timeout);
    return std::min(once * (int64_t{1} << std::min(tries, 8u)), most);
  }

 private:
  Duration smoothed_;
  Duration variation_;
  Duration least_;
};

}  // namespace urma::transport
