// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "base/ticks.h"
#include "urma/core/profile.h"

namespace urma::engine {

// How often each stage ran, and how long it took, in ticks. Any thread may read the sums at any
// time.
class StageTimes {
 public:
  // The present time, for `add`.
  uint64_t now() const { return ticks_.read(); }
  struct Sum {
    uint64_t times = 0;
    uint64_t ticks = 0;
    uint64_t long_times = 0;
    uint64_t long_ticks = 0;
  };

  // One thread at a time calls `add`; any number call `add_shared`, which takes longer. The
  // counters of two processors may differ a little, so a stage can seem to end before it began; it
  // then counts as one that took no time.
  void add(Stage stage, uint64_t begin, uint64_t end) { add_by(plain, stage, begin, end); }
  void add_shared(Stage stage, uint64_t begin, uint64_t end) { add_by(shared, stage, begin, end); }
  Sum sum(Stage stage) const {
    const Counts& counts = counts_[static_cast<uint8_t>(stage)];
    return {counts.times.load(std::memory_order_relaxed),
            counts.ticks.load(std::memory_order_relaxed),
            counts.long_times.load(std::memory_order_relaxed),
            counts.long_ticks.load(std::memory_order_relaxed)};
  }

 private:
  struct Counts {
    std::atomic<uint64_t> times{0};
    std::atomic<uint64_t> ticks{0};
    std::atomic<uint64_t> long_times{0};
    std::atomic<uint64_t> long_ticks{0};
  };

  static void plain(std::atomic<uint64_t>& sum, uint64_t by) {
    sum.store(sum.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
  }
  static void shared(std::atomic<uint64_t>& sum, uint64_t by) {
    sum.fetch_add(by, std::memory_order_relaxed);
  }
  template <class Increase>
  void add_by(Increase&& increase, Stage stage, uint64_t begin, uint64_t end) {
    Counts& counts = counts_[static_cast<uint8_t>(stage)];
    const uint64_t took = end > begin ? end - begin : 0;
    increase(counts.times, 1);
    increase(counts.ticks, took);
    if (took <= millisecond_) [[likely]]
      return;
    increase(counts.long_times, 1);
    increase(counts.long_ticks, took);
  }

  const Ticks& ticks_ = Ticks::of_this_machine();
  const uint64_t millisecond_ = ticks_.ticks_in(std::chrono::milliseconds(1));
  alignas(64) std::array<Counts, stage_count> counts_{};
};

// Times the stages that follow one another in a pass: each begins where the one before it
// ended, so a boundary takes one reading.
class StageTimer {
 public:
  explicit StageTimer(StageTimes& times) : times_(times), begin_(times.now()) {}

  // The stage names itself at its end, when it is known what it was.
  void ended(Stage stage) {
    const uint64_t now = times_.now();
    times_.add(stage, begin_, now);
    begin_ = now;
  }

 private:
  StageTimes& times_;
  uint64_t begin_;
};

// Takes the place of a StageTimer in a device that is not profiled. The functions that run the
// passes are compiled for both, so that such a device pays nothing for the boundaries.
struct NoStages {
  void ended(Stage) const {}
};

}  // namespace urma::engine
