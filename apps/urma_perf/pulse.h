// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <mutex>
#include <span>

#include "apps/common/failure.h"

namespace urma::apps::perf {

// Keeps an inlined device alive during long operations. A side that fills or compares a gigabyte
// does not poll meanwhile, and a device that is not polled does not answer, so its peers consider
// it lost after a second. Therefore such operations are done in slices, with a beat after each,
// which runs the engine. Any thread may use it.
class Pulse {
 public:
  static constexpr size_t slice_bytes = 1 << 20;

  explicit Pulse(Device& device) : nothing_(must(device.jfc(1), "a completion queue")) {}

  // Each poll of a queue where nothing ever arrives is a pass of the engine.
  void beat() {
    const std::unique_lock turn(mutex_, std::try_to_lock);
    if (turn) (void)nothing_.poll({});
  }

  // Calls part(slice, its position) until all slices are done or a call returns false.
  template <class Byte, class Part>
  void in_slices(std::span<Byte> all, Part&& part) {
    for (size_t at = 0; at < all.size(); at += slice_bytes) {
      if (!part(all.subspan(at, std::min(slice_bytes, all.size() - at)), at)) return;
      if (all.size() > slice_bytes) beat();
    }
  }

 private:
  std::mutex mutex_;
  Jfc nothing_;
};

}  // namespace urma::apps::perf
