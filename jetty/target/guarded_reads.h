#pragma once

#include <array>

#include "base/region.h"
#include "jetty/flow.h"
#include "memseg/segment_table.h"

namespace urma::jetty {

// Copies of guarded memory, one for each packet of an answer: a driver, and who sums up what it
// sends, read what a frame names until it has settled, and must find something there. Engine
// thread only.
class GuardedReads {
 public:
  // Before the first copy; again does nothing. False: there is no address space.
  bool prepare() {
    if (slots_.data() == nullptr) slots_ = Region::try_make(most * slice_bytes, page);
    return slots_.data() != nullptr;
  }

  // Copies that are made from now on belong to this fill, and are read until it has settled.
  void begin_fill(uint64_t fill) { fill_ = fill; }
  void settled(uint64_t fill) {
    while (count_ > 0 && fills_[first_] <= fill) {
      first_ = (first_ + 1) % most;
      --count_;
    }
    if (count_ == 0) first_ = 0;  // the same pages again
  }

  // For a fill of so many packets, and one that is sent at once. Else nothing is filled until
  // something has settled: a device of several ports keeps more frames than there are copies.
  bool room_for(size_t packets) const { return count_ + packets < most; }
  // At most slice_bytes. Null: that memory is not there; or there was no room.
  const std::byte* copy(const GuardedCopy& guard, const std::byte* from, uint32_t bytes) {
    if (count_ == most) return nullptr;
    const uint32_t slot = (first_ + count_) % most;
    std::byte* const to = slots_.data() + size_t{slot} * slice_bytes;
    if (!guard.copy(to, from, bytes)) return nullptr;
    fills_[slot] = fill_;
    ++count_;
    return to;
  }
  // The latest one is in no frame, and was read already.
  void give_back_last() { --count_; }

 private:
  // About as many as a driver has frames; of address space, of which little is used.
  static constexpr uint32_t most = 1024;
  static constexpr size_t page = 4096;

  Region slots_;
  std::array<uint64_t, most> fills_{};  // whose each copy is
  uint32_t first_ = 0;
  uint32_t count_ = 0;
  uint64_t fill_ = 0;
};

}  // namespace urma::jetty
