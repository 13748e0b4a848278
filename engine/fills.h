// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace urma::engine {

// Records which memory the driver may still read. Frames are filled in batches, the *fills*,
// numbered upwards from 1. Each frame of a fill may name memory of the application. The driver
// reports how many frames it has finished with; a fill has *settled* when that number includes its
// last frame. So memory that is named by no fill after number N is not read any longer once N has
// settled.
//
// It does not know what a frame contains, nor how many of the filled frames the driver has taken.
// `Engine` owns it; only the thread that runs the engine calls it.
class Fills {
 public:
  // At most this many fills can be unsettled at a time.
  static constexpr size_t most = 1024;

  // Returns whether there is room for one more fill.
  bool room() const { return count_ < most; }
  // Returns the number of the latest fill; 0 if there was none.
  uint64_t latest() const { return latest_; }
  // Records fill number `latest() + 1`, with this many frames. Call it only if `room` returns true.
  void add(size_t frames) {
    frames_ += frames;
    unsettled_[(first_ + count_++) % most] = {++latest_, frames_};
  }

  // The driver has finished with the first `frames` of all frames that were ever filled. Returns
  // whether a fill was unsettled before.
  bool settle(uint64_t frames) {
    const bool any = count_ > 0;
    while (count_ > 0 && unsettled_[first_].until <= frames) {
      settled_ = unsettled_[first_].fill;
      first_ = (first_ + 1) % most;
      --count_;
    }
    if (count_ == 0) first_ = 0;  // the same cache line is used again
    return any;
  }
  // Returns the number of the last fill up to which all fills have settled.
  uint64_t settled() const { return settled_; }
  bool has_settled(uint64_t fill) const { return settled_ >= fill; }
  bool all_settled() const { return count_ == 0; }

 private:
  struct Fill {
    uint64_t fill;
    uint64_t until;  // the number of frames filled up to the end of this fill
  };
  std::array<Fill, most> unsettled_;  // a ring
  size_t first_ = 0;
  size_t count_ = 0;
  uint64_t frames_ = 0;
  uint64_t latest_ = 0;
  uint64_t settled_ = 0;
};

}  // namespace urma::engine
