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

}  // namespace urma
