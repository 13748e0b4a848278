#pragma once

#include <time.h>

#include "urma/core/time.h"

namespace urma {

// The machine's monotonic clock, in nanoseconds. Called by the engine once per pass, and by tools.
inline Time read_clock() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return Time(std::chrono::seconds(now.tv_sec) + Duration(now.tv_nsec));
}

// The calendar's time since 1970, which jumps when it is set. Only for output to people and other
// hosts; no decision of the library depends on it.
inline Duration read_calendar() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return std::chrono::seconds(now.tv_sec) + Duration(now.tv_nsec);
}
// The time since the machine was started.
inline int64_t seconds_since_boot() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return now.tv_sec;
}

}  // namespace urma
