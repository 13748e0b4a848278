// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

namespace urma {

// Comes between the store by which a thread says that it uses memory, and the load that shows
// whether its owner still allows that. The owner has the kernel interrupt this thread between its
// own store and load (drivers/cxl/barriers.h), so that keeping the order of the program is enough.
// `fences` is not zero if there are owners that cannot; then this is a fence.
inline void fence_before_use(const std::atomic<uint32_t>& fences) {
  if (fences.load(std::memory_order_relaxed) != 0) [[unlikely]] {
    std::atomic_thread_fence(std::memory_order_seq_cst);
  } else {
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
}

}  // namespace urma
