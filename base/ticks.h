// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/clock.h"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace urma {

// The counter of a processor that runs at a constant rate, to measure times of nanoseconds: reading
// it takes less than half as long as `read_clock`. The processor may read it some instructions
// earlier or later than the program says. On a processor without such a counter, this class reads
// the clock.
class Ticks {
 public:
  // Returns the only object. The first call takes 1 ms, in which it measures the rate.
  static const Ticks& of_this_machine();

  uint64_t read() const {
    return counter_ ? counter() : static_cast<uint64_t>(read_clock().time_since_epoch().count());
  }
  Duration time_of(uint64_t ticks) const {
    return Duration(static_cast<int64_t>(static_cast<double>(ticks) * ns_per_tick_));
  }
  uint64_t ticks_in(Duration time) const {
    return static_cast<uint64_t>(static_cast<double>(time.count()) / ns_per_tick_);
  }
  double ns_per_tick() const { return ns_per_tick_; }

 private:
  Ticks();

  static uint64_t counter() {
#if defined(__x86_64__)
    return __rdtsc();
#elif defined(__aarch64__)
    uint64_t count = 0;
    asm volatile("mrs %0, cntvct_el0" : "=r"(count));
    return count;
#else
    return 0;
#endif
  }

  bool counter_ = false;
  double ns_per_tick_ = 1;
};

}  // namespace urma
