#pragma once

#include <time.h>

#include "urma/core/time.h"

namespace urma {

// Monotonic nanoseconds of the machine. Called by the engine once per pass, and by tools.
inline Time read_clock() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return Time(std::chrono::seconds(now.tv_sec) + Duration(now.tv_nsec));
}

// What calendars say, since 1970: it jumps when somebody sets it. For what is told to people and
// other hosts; nothing here goes by it.
inline Duration read_calendar() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return std::chrono::seconds(now.tv_sec) + Duration(now.tv_nsec);
}
// By its own: since the machine was started.
inline int64_t seconds_since_boot() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return now.tv_sec;
}

}  // namespace urma
