#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace urma {

// Zeroed address space, cut from larger pieces that blocks of the same size share, so that small
// ones share pages: a block costs no memory until something in it is written, and then no system
// call, only the fault of a page. What a million queues may need one day costs nothing today.
// Made on the control path, by any thread. One that was written may end anywhere: nothing is
// locked, and its memory goes back when the next one is made, or with `tidy`. Begins at a cache
// line.
class LazyBlock {
 public:
  // Throws std::bad_alloc when there is no such space. All of 0 bytes are one of 256, of zeros that
  // are never written.
  explicit LazyBlock(size_t bytes);
  LazyBlock(const LazyBlock&) = delete;
  LazyBlock& operator=(const LazyBlock&) = delete;
  ~LazyBlock();

  std::byte* data() const { return data_; }
  // To be said before something is written, or whoever has the space next does not find zeros.
  void touch() {
    const uint32_t state = state_.load(std::memory_order_relaxed);
    if ((state & touched_bit) == 0) [[unlikely]]
      state_.store(state | touched_bit, std::memory_order_relaxed);
  }
  // What has ended gives its memory back now. Control path.
  static void tidy();

  bool touched() const { return (state_.load(std::memory_order_relaxed) & touched_bit) != 0; }

 private:
  static constexpr uint32_t touched_bit = 1;
  size_t lines() const { return state_.load(std::memory_order_relaxed) >> 1; }

  std::byte* data_;
  std::atomic<uint32_t> state_{0};  // cache lines, and whether they may have been written
};

}  // namespace urma
