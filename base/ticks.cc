// SPDX-License-Identifier: Apache-2.0
#include "base/ticks.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "base/above_standard.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace urma {
namespace {

// Returns whether the processor has a counter that runs at a constant rate, whatever its frequency
// and its sleep.
bool has_constant_counter() {
#if defined(__x86_64__)
  constexpr unsigned power_management = 0x8000'0007;
  constexpr unsigned invariant = 1 << 8;
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  return __get_cpuid(power_management, &a, &b, &c, &d) != 0 && (d & invariant) != 0;
#elif defined(__aarch64__)
  return true;
#else
  return false;
#endif
}

// Returns whether the kernel has found that the counters of processors differ, so that it uses
// another clock.
bool kernel_distrusts_counter() {
  constexpr char path[] = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
  const int file = above_standard(::open(path, O_RDONLY | O_CLOEXEC));
  if (file < 0) return false;
  char text[32] = {};
  const ssize_t bytes = ::read(file, text, sizeof text);
  ::close(file);
  const std::string_view clock(text, static_cast<size_t>(std::max<ssize_t>(bytes, 0)));
  return clock.starts_with("hpet") || clock.starts_with("acpi_pm") || clock.starts_with("jiffies");
}

// A reading of the counter, and the time between the two readings of the clock around it.
struct Sample {
  Time at{};
  uint64_t ticks = 0;
};

// Returns the best of several samples, because another thread may run between two readings.
Sample sample(const Ticks& ticks) {
  Sample best;
  Duration least = Duration::max();
  for (int i = 0; i < 16; ++i) {
    const Time before = read_clock();
    const uint64_t count = ticks.read();
    const Duration took = read_clock() - before;
    if (took >= least) continue;
    least = took;
    best = {before + took / 2, count};
  }
  return best;
}

}  // namespace

Ticks::Ticks() : counter_(has_constant_counter() && !kernel_distrusts_counter()) {
  if (!counter_) return;
  constexpr Duration measured = std::chrono::milliseconds(1);
  const Sample begin = sample(*this);
  while (read_clock() - begin.at < measured) {
  }
  const Sample end = sample(*this);
  // A counter that stands still, as in some emulators, measures nothing.
  counter_ = end.ticks > begin.ticks;
  if (!counter_) return;
  ns_per_tick_ = static_cast<double>((end.at - begin.at).count()) /
                 static_cast<double>(end.ticks - begin.ticks);
}

const Ticks& Ticks::of_this_machine() {
  static const Ticks ticks;
  return ticks;
}

}  // namespace urma
