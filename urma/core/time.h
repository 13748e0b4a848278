#pragma once

#include <chrono>

namespace urma {

using Duration = std::chrono::nanoseconds;

// The clock that every engine counts by. It has no now(): protocol code is told the time, so the
// same object files run under a real clock and under a simulated one.
struct EngineClock {
  using rep = Duration::rep;
  using period = Duration::period;
  using duration = Duration;
  using time_point = std::chrono::time_point<EngineClock>;
  static constexpr bool is_steady = true;
};
using Time = EngineClock::time_point;

inline constexpr Time never = Time::max();

}  // namespace urma
