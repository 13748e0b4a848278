// SPDX-License-Identifier: Apache-2.0
#include "engine/profiler.h"

#include <algorithm>

namespace urma::engine {
namespace {

// Measures how long it takes to end a stage, in nanoseconds: what a stage that does nothing seems
// to take. The best of several loops, because other threads may run meanwhile.
double cost_of_boundary() {
  constexpr uint64_t boundaries = 1000;
  StageTimes times;
  uint64_t least = UINT64_MAX;
  for (int i = 0; i < 8; ++i) {
    const uint64_t before = times.sum(Stage::finish).ticks;
    StageTimer timer(times);
    for (uint64_t j = 0; j < boundaries; ++j) timer.ended(Stage::finish);
    least = std::min(least, times.sum(Stage::finish).ticks - before);
  }
  return static_cast<double>(least) * Ticks::of_this_machine().ns_per_tick() / boundaries;
}

}  // namespace

Profiler::Profiler() : cost_ns_(cost_of_boundary()) {}

Profile Profiler::read() const {
  Profile out{.at = read_clock(), .cost_ns = cost_ns_};
  for (const StageInfo& info : all_stages()) {
    StageTimes::Sum sum = passes_.sum(info.stage);
    for (const StageTimes& calls : calls_) {
      const StageTimes::Sum more = calls.sum(info.stage);
      sum.times += more.times;
      sum.ticks += more.ticks;
      sum.long_times += more.long_times;
      sum.long_ticks += more.long_ticks;
    }
    out[info.stage] = {sum.times, ticks_.time_of(sum.ticks), sum.long_times,
                       ticks_.time_of(sum.long_ticks)};
  }
  return out;
}

}  // namespace urma::engine
