#pragma once

#include <time.h>

#include "urma/base/time.h"

namespace urma {

// Monotonic nanoseconds of the machine. Called by the engine once per pass, and by tools.
inline Time read_clock() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return Time(std::chrono::seconds(now.tv_sec) + Duration(now.tv_nsec));
}

// For people, and to find out when something began.
inline int64_t seconds_since_1970() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return now.tv_sec;
}
inline int64_t seconds_since_boot() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return now.tv_sec;
}

}  // namespace urma
