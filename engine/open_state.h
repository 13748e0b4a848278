// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "base/futex.h"
#include "urma/core/time.h"

namespace urma::engine {

// Records whether a device is open, is being closed, or is closed. It does not know what closing
// does. Called by any thread.
class OpenState {
 public:
  // Returns false as soon as the device begins to close: it accepts no more works.
  bool open() const { return open_.load(std::memory_order_relaxed); }
  // Returns true once all works that were accepted have ended and their completions can be polled.
  bool closed() const { return closed_.load(std::memory_order_acquire) != 0; }

  // From now on the device accepts no more works.
  void refuse() { open_.store(false); }
  // Returns true to one thread, which closes the device and then calls `end`.
  bool begin() {
    refuse();
    return !begun_.exchange(true);
  }
  void end() {
    closed_.store(1, std::memory_order_release);
    futex_wake_all(closed_);
  }
  // Sleeps until `end` has been called.
  void await() {
    while (!closed()) futex_wait(closed_, 0, patience);
  }

  // A thread that waits for something else checks this often whether the device has been closed.
  static constexpr Duration patience = std::chrono::milliseconds(100);

 private:
  std::atomic<bool> open_{true};
  std::atomic<bool> begun_{false};
  std::atomic<uint32_t> closed_{0};
};

}  // namespace urma::engine
