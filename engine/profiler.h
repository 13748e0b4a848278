// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "base/thread_mark.h"
#include "engine/stage_times.h"

namespace urma::engine {

// The stages of a profiled device: those of its passes, which the thread that holds the engine
// token times, and those of the calls of the application. Owned by `Runner`. It times nothing
// itself. Any thread may call it.
class Profiler {
 public:
  Profiler();

  // For the thread that holds the engine token.
  StageTimes& passes() { return passes_; }
  // For calls of this thread. Few threads share their times with another one, so that they seldom
  // wait for a cache line.
  StageTimes& calls() {
    constexpr uint64_t spread = 0x9e37'79b9'7f4a'7c15;
    return calls_[(reinterpret_cast<uint64_t>(this_thread()) * spread) >> (64 - calls_bits)];
  }
  // Returns the sums of the passes and of all calls.
  Profile read() const;

 private:
  static constexpr unsigned calls_bits = 6;

  const Ticks& ticks_ = Ticks::of_this_machine();
  const double cost_ns_;
  StageTimes passes_;
  std::array<StageTimes, 1 << calls_bits> calls_;
};

// Times one call of the application.
class CallTimer {
 public:
  explicit CallTimer(Profiler& profiler) : times_(profiler.calls()), begin_(times_.now()) {}

  void ended(Stage stage) { times_.add_shared(stage, begin_, times_.now()); }

 private:
  StageTimes& times_;
  const uint64_t begin_;
};

}  // namespace urma::engine
