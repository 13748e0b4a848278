// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <span>

#include "drivers/packet_port.h"

namespace urma::engine {

// Holds the frames that the driver has lent, of which the first ones may wait to be sent. A driver
// may take only some of the filled frames at a time; the others wait, in order, and nothing is
// filled meanwhile. It does not know what is in the frames.
//
// The frames belong to the port, which the caller names in each call, always the same one;
// `give_back` returns them to it. `Engine` owns it; only the thread that runs the engine calls it.
class LentFrames {
 public:
  // At most this many frames are lent, and are filled together.
  static constexpr size_t most = 64;

  // Returns the number of frames that wait to be sent.
  size_t waiting() const { return filled_; }

  // Borrows as many frames as the driver has, up to `most`, and returns all empty ones. Called only
  // while no frame waits.
  std::span<TxFrame* const> borrow(drivers::PacketPort& port) {
    lent_ += port.lend(std::span(frames_).subspan(lent_));
    return std::span(frames_).first(lent_);
  }
  // The first `count` of the frames that `borrow` returned were filled.
  void fill(size_t count) { filled_ = count; }
  // Offers the waiting frames to the driver, in order. Returns how many it took.
  size_t send(drivers::PacketPort& port, Time now) {
    const size_t taken = port.send(std::span(frames_).first(filled_), now);
    drop(taken);
    return taken;
  }
  // Gives all frames back to the port; frames that wait are not sent.
  void give_back(drivers::PacketPort& port) {
    port.unlend(std::span(frames_).first(lent_));
    lent_ = filled_ = 0;
  }

 private:
  // Removes the first `taken` frames, which the driver has taken. The others stay in order. Behind
  // them come the empty frames, those lent last in front, because they are still in the cache.
  void drop(size_t taken) {
    if (taken == 0) return;
    TxFrame** const frames = frames_.data();
    const size_t moved = std::min(taken, lent_ - filled_);
    std::copy(frames + taken, frames + filled_, frames);
    filled_ -= taken;
    std::copy(frames + lent_ - moved, frames + lent_, frames + filled_);
    lent_ -= taken;
  }

  std::array<TxFrame*, most> frames_{};  // [0, filled_) wait, [filled_, lent_) are empty
  size_t lent_ = 0;
  size_t filled_ = 0;
};

}  // namespace urma::engine
