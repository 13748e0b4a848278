#pragma once

#include <algorithm>
#include <mutex>
#include <span>

#include "apps/urma_perf/failure.h"

namespace urma::perf {

// A side that fills or compares a gigabyte does not poll meanwhile, and an inlined device that is
// not polled does not answer: its peers consider it lost after a second. So long operations are
// done in slices, with a beat after each, which lets the engine run. Any thread may use it.
class Pulse {
 public:
  static constexpr size_t slice_bytes = 1 << 20;

  explicit Pulse(Device& device) : nothing_(must(device.jfc(1), "a completion queue")) {}

  // Polling a queue where nothing ever arrives is a pass of the engine each time.
  void beat() {
    const std::unique_lock turn(mutex_, std::try_to_lock);
    if (turn) (void)nothing_.poll({});
  }

  // Calls part(slice, where it begins), until all was handed over or it returns false.
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

}  // namespace urma::perf
