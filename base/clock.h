// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <time.h>

#include "urma/core/time.h"

namespace urma {

// Returns the time of the machine's monotonic clock, in nanoseconds. Called by the engine once per
// pass, and by tools.
inline Time read_clock() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return Time(std::chrono::seconds(now.tv_sec) + Duration(now.tv_nsec));
}

// Returns the calendar time since 1970, which jumps when the clock is set. Only for output to
// people and other hosts; no decision of the library depends on it.
inline Duration read_calendar() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return std::chrono::seconds(now.tv_sec) + Duration(now.tv_nsec);
}
// Returns the seconds since the machine was started.
inline int64_t seconds_since_boot() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return now.tv_sec;
}

}  // namespace urma
