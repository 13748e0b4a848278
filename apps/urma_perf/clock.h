// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace urma::apps::perf {

// Nanoseconds of the monotonic clock.
inline int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// The cost of reading the clock, to be subtracted from the time between two readings.
inline int64_t clock_cost() {
  static const int64_t cost = [] {
    int64_t least = INT64_MAX;
    for (int i = 0; i < 1000; ++i) {
      const int64_t before = now();
      least = std::min(least, now() - before);
    }
    return least;
  }();
  return cost;
}

inline constexpr int64_t microsecond = 1000;
inline constexpr int64_t millisecond = 1000 * microsecond;
inline constexpr int64_t second = 1000 * millisecond;

inline double seconds(int64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1e9; }

struct Progress;

// When a loop ends: at a time or after a number of messages, whichever comes first.
struct Stop {
  int64_t at = INT64_MAX;
  uint64_t count = UINT64_MAX;
  Progress* progress = nullptr;  // where to report the progress; may be null
};

}  // namespace urma::apps::perf
