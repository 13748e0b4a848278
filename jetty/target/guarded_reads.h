// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "base/region.h"
#include "jetty/flow.h"
#include "memseg/segment_table.h"

namespace urma::jetty {

// Copies of guarded memory, one for each packet of an answer. The driver, and the code that
// computes the ICRC, read the bytes that a frame refers to until it has settled, so these must stay
// mapped. Only the thread that runs the engine calls it.
class GuardedReads {
 public:
  // Call it before the first copy; further calls do nothing. Returns false if the address space is
  // exhausted.
  bool prepare() {
    if (slots_.data() == nullptr) slots_ = Region::try_make(most * slice_bytes, page);
    return slots_.data() != nullptr;
  }

  // Copies that are made from now on belong to this fill, and are kept until it has settled.
  void begin_fill(uint64_t fill) { fill_ = fill; }
  void settled(uint64_t fill) {
    while (count_ > 0 && fills_[first_] <= fill) {
      first_ = (first_ + 1) % most;
      --count_;
    }
    if (count_ == 0) first_ = 0;  // use the same pages again
  }

  // Returns whether there is room for a fill of `packets` packets, and one more that is sent
  // immediately. If not, nothing is filled until copies have settled: a device with several ports
  // may keep more frames than there can be copies.
  bool room_for(size_t packets) const { return count_ + packets < most; }
  // Copies at most slice_bytes. Returns null if the memory is not mapped, or there is no room.
  const std::byte* copy(const GuardedCopy& guard, const std::byte* from, uint32_t bytes) {
    if (count_ == most) return nullptr;
    const uint32_t slot = (first_ + count_) % most;
    std::byte* const to = slots_.data() + size_t{slot} * slice_bytes;
    if (!guard.copy(to, from, bytes)) return nullptr;
    fills_[slot] = fill_;
    ++count_;
    return to;
  }
  // The latest copy is in no frame and is not needed any more.
  void give_back_last() { --count_; }

 private:
  // About as many as a driver has frames. The copies occupy address space, of which little is used.
  static constexpr uint32_t most = 1024;
  static constexpr size_t page = 4096;

  Region slots_;
  std::array<uint64_t, most> fills_{};  // the fill of each copy
  uint32_t first_ = 0;
  uint32_t count_ = 0;
  uint64_t fill_ = 0;
};

}  // namespace urma::jetty
