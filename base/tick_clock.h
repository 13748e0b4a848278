// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "base/ticks.h"

namespace urma {

// The machine's monotonic clock, for a reader that needs the time more often than it may take 27
// ns. Between two readings of the clock, which are at most 100 us apart, it adds the ticks of the
// processor's counter, so the time differs from that of the clock by less than 10 us. If the
// counters of two processors differ, and the thread moves from one to the other, it may be 100 us
// ahead, or stand still for so long; it never goes back. On a processor without such a counter it
// reads the clock each time. Used by one thread at a time.
class TickClock {
 public:
  // The first object of the process takes 1 ms (Ticks).
  TickClock() : ticks_(Ticks::of_this_machine()), span_(ticks_.ticks_in(apart)) {}

  Time now() {
    const uint64_t since = ticks_.read() - read_at_;
    // A counter that seems to have gone back shows a huge number.
    if (since >= span_) [[unlikely]]
      return read();
    return latest_ = std::max(latest_, base_ + ticks_.time_of(since));
  }

 private:
  static constexpr Duration apart = std::chrono::microseconds(100);

  [[gnu::noinline]] Time read() {
    read_at_ = ticks_.read();
    base_ = read_clock();
    return latest_ = std::max(latest_, base_);
  }

  const Ticks& ticks_;
  const uint64_t span_;
  uint64_t read_at_ = 0;
  Time base_{};  // the clock's time at `read_at_`
  Time latest_{};
};

}  // namespace urma
