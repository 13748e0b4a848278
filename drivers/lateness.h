// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "base/prng.h"
#include "base/region.h"
#include "drivers/device_string.h"
#include "urma/core/time.h"
#include "wire/frame.h"

namespace urma::drivers {

// The delays after which a device reads the memory that its frames name, and reports that it has
// read it. A NIC has such delays, and `sim` and `fault` imitate them. All fields are zero for a
// device that copies in `send`.
struct Lateness {
  Duration hold{};           // from `send` until the memory is read and the packet leaves
  Duration hold_jitter{};    // added to it, uniformly distributed
  Duration settle{};         // from that moment until `settled` counts the frame
  Duration settle_jitter{};  // added to it, uniformly distributed
  uint64_t ring = 0;         // the most frames that the device holds; 0: no limit of its own

  bool none() const {
    return hold == Duration{} && hold_jitter == Duration{} && settle == Duration{} &&
           settle_jitter == Duration{} && ring == 0;
  }
  void read_options(OptionReader& options);
};

// The frames that a late device has taken, oldest first. For each, the memory is read, and later
// the frame is settled. Frames keep their order in both steps.
class LateFrames {
 public:
  LateFrames(size_t most_frames, const Lateness& lateness)
      : lateness_(lateness), held_(most_frames) {}

  bool full() const {
    return taken_ - settled_ == held_.size() ||
           (lateness_.ring != 0 && taken_ - settled_ >= lateness_.ring);
  }
  // Adds a frame. The device must not be full.
  void take(TxFrame* frame, Time now, Prng& prng);
  // Returns the next frame whose memory is due to be read, or null. The caller reads it
  // immediately.
  TxFrame* read(Time now);
  // Returns the next frame that was read and is due to be settled, or null.
  TxFrame* settle(Time now);
  // Returns how many frames have been settled.
  uint64_t settled() const { return settled_; }
  // Returns when `read` or `settle` will return a frame again; `never` if the device holds none.
  Time next() const;

 private:
  struct Held {
    TxFrame* frame;
    Time read_at;
    Time settled_at;
  };
  Held& at(uint64_t number) { return held_[number % held_.size()]; }
  const Held& at(uint64_t number) const { return held_[number % held_.size()]; }

  const Lateness lateness_;
  RegionArray<Held> held_;
  // The numbers of frames that have been taken, read and settled.
  uint64_t taken_ = 0;
  uint64_t read_ = 0;
  uint64_t settled_ = 0;
};

}  // namespace urma::drivers
