// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "apps/urma_perf/clock.h"

namespace urma::apps::perf {

// The progress of the loops of a case. Another thread may read it.
struct Progress {
  alignas(64) std::atomic<uint64_t> messages{0};
  std::atomic<int64_t> time{0};  // of all threads together
};

// Reports the progress of a loop ten times a second, from values that the loop has anyway.
class ProgressWriter {
 public:
  // `to` may be null; then nothing is reported.
  ProgressWriter(Progress* to, int64_t begin)
      : to_(to), last_(begin), next_(to == nullptr ? INT64_MAX : begin) {}

  // `messages` is the number of messages of this loop so far.
  void at(int64_t time, uint64_t messages) {
    if (time < next_) return;
    to_->messages.fetch_add(messages - told_, std::memory_order_relaxed);
    to_->time.fetch_add(time - last_, std::memory_order_relaxed);
    told_ = messages;
    last_ = time;
    next_ = time + 100 * millisecond;
  }

 private:
  Progress* to_;
  int64_t last_;
  int64_t next_;
  uint64_t told_ = 0;
};

}  // namespace urma::apps::perf
