// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

namespace urma {

// The type of all durations of this library, in nanoseconds.
using Duration = std::chrono::nanoseconds;

// The clock of the engine. It has no now(): callers pass the time to protocol code, so the same
// object files run under the monotonic clock of the system and under a simulated one.
struct EngineClock {
  // The types that std::chrono asks of a clock.
  using rep = Duration::rep;
  using period = Duration::period;
  using duration = Duration;
  using time_point = std::chrono::time_point<EngineClock>;
  static constexpr bool is_steady = true;  // it never goes back
};
// A time of that clock.
using Time = EngineClock::time_point;

// A time that never comes, for deadlines that are not set.
inline constexpr Time never = Time::max();

}  // namespace urma
