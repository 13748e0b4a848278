// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <utility>

#include "transport/upper.h"
#include "urma/core/time.h"

namespace urma::transport {

// Gathers packets of one burst for the layer above, which then takes them in few calls. It does not
// check packets. `RtpIngress` owns it; only the thread that runs the engine calls it.
class Batch {
 public:
  static constexpr size_t capacity = 64;

  explicit Batch(PacketSink& sink) : sink_(sink) {}

  // The next packet is put together here, and belongs to the batch once `add` is called.
  Received& next() { return packets_[count_]; }
  size_t index() const { return count_; }
  // Returns whether the layer above takes `next`.
  bool admits() { return sink_.admits(packets_[count_], count_); }
  void add(Time now) {
    if (++count_ == capacity) deliver(now);
  }
  void deliver(Time now) {
    if (count_ == 0) return;
    sink_.accept(std::span(packets_).first(std::exchange(count_, 0)), now);
  }

 private:
  PacketSink& sink_;
  std::array<Received, capacity> packets_;
  size_t count_ = 0;
};

}  // namespace urma::transport
