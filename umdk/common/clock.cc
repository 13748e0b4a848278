// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>

#include "base/clock.h"
#include "umdk/include/ub/umdk/urma/ub_get_clock.h"

namespace {

using Microseconds = std::chrono::duration<double, std::micro>;

struct Reading {
  uint64_t ticks;
  urma::Time time;
};

// The counter and the time at one moment. Of several attempts it takes the one that was interrupted
// least.
Reading read_both() {
  constexpr int attempts = 20;
  Reading best{};
  uint64_t least = UINT64_MAX;
  for (int i = 0; i < attempts; ++i) {
    const uint64_t before = get_cycles();
    const urma::Time now = urma::read_clock();
    const uint64_t between = get_cycles() - before;
    if (between >= least) continue;
    least = between;
    best = {before + between / 2, now};
  }
  return best;
}

double rate(const Reading& from, const Reading& to) {
  return static_cast<double>(to.ticks - from.ticks) / Microseconds(to.time - from.time).count();
}

}  // namespace

extern "C" double get_cpu_mhz(bool cpu_freq_warn) {
  constexpr urma::Duration part = std::chrono::milliseconds(10);
  constexpr double tolerance = 0.02;
  std::array<Reading, 3> at{read_both()};
  for (size_t i = 1; i < at.size(); ++i) {
    while (urma::read_clock() - at[i - 1].time < part) {
    }
    at[i] = read_both();
  }
  const double first = rate(at[0], at[1]);
  const double second = rate(at[1], at[2]);
  if (cpu_freq_warn && std::abs(first - second) > tolerance * first) {
    std::fprintf(stderr,
                 "get_cpu_mhz: the processor's counter does not run evenly (%.0f and %.0f ticks "
                 "per us), so times may be wrong\n",
                 first, second);
  }
  return rate(at[0], at[2]);
}
