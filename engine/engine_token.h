// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

namespace urma::engine {

// The right to run the engine, held by one thread at a time. It is not a lock: no thread waits for
// it. Each holder sees the stores of the holders before it.
class EngineToken {
 public:
  bool take() {
    // An unsuccessful attempt does not take the cache line from the holder.
    return !taken_.load(std::memory_order_relaxed) &&
           !taken_.exchange(true, std::memory_order_acquire);
  }
  void drop() { taken_.store(false, std::memory_order_release); }

 private:
  alignas(64) std::atomic<bool> taken_{false};
};

}  // namespace urma::engine
