// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace urma {

// Zeroed address space, cut from larger pieces that blocks of the same size share, so that small
// blocks share pages. A block takes no memory until something in it is written, and then costs a
// page fault but no system call. So memory can be reserved for a million queues that may never be
// used. Blocks are created on the control path, by any thread. A block that was written may be
// destroyed by any thread without a lock: its memory is reclaimed when the next block is created,
// or by `tidy`. A block begins at a cache line.
class LazyBlock {
 public:
  // Throws std::bad_alloc if the address space is exhausted. All blocks of 0 bytes are one block of
  // 256 zero bytes that is never written.
  explicit LazyBlock(size_t bytes);
  LazyBlock(const LazyBlock&) = delete;
  LazyBlock& operator=(const LazyBlock&) = delete;
  ~LazyBlock();

  std::byte* data() const { return data_; }
  // The owner calls this before it writes to the block. Otherwise the next user of the memory would
  // not find zeros.
  void touch() {
    const uint32_t state = state_.load(std::memory_order_relaxed);
    if ((state & touched_bit) == 0) [[unlikely]]
      state_.store(state | touched_bit, std::memory_order_relaxed);
  }
  // Reclaims the memory of destroyed blocks now. Called on the control path.
  static void tidy();

  bool touched() const { return (state_.load(std::memory_order_relaxed) & touched_bit) != 0; }

 private:
  static constexpr uint32_t touched_bit = 1;
  size_t lines() const { return state_.load(std::memory_order_relaxed) >> 1; }

  std::byte* data_;
  std::atomic<uint32_t> state_{0};  // number of cache lines, and whether they may have been written
};

}  // namespace urma
