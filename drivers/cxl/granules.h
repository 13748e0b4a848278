// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "drivers/cxl/mapping.h"
#include "drivers/cxl/slots.h"
#include "drivers/segment_memory.h"

namespace urma::drivers::cxl {

// The part of a window that holds segments, in granules: which of them are free, and which belong
// to which device. A segment is a row of granules, and the record of the first one is its record.
// Does not know which devices may use a segment: that is Segments. One thread at a time uses it,
// except for `zero` and `empty`, which take long and must not be called in a pass.
class Granules {
 public:
  // `elsewhere`: segments lie in files of their own, so each needs only its record here.
  Granules(const Mapping& mapping, Slots& slots, bool elsewhere)
      : mapping_(mapping),
        file_(mapping.file()),
        words_(mapping.words()),
        slots_(slots),
        elsewhere_(elsewhere) {}

  // Takes granules for `bytes` bytes, and sets `segment` to the number of the first one. Does not
  // wait for the window's lock.
  SegmentMemory::Taken take(uint64_t bytes, uint32_t& segment);
  // Undoes `take` before any other process has seen the segment.
  void undo(uint32_t segment) { record(segment).granules.store(0, std::memory_order_relaxed); }
  // The owner does not use the segment any more. Its granules are free once no device holds it.
  void give_back(uint32_t segment) {
    record(segment).owner.store(no_slot, std::memory_order_release);
  }
  // Makes the file system allocate memory for all of the segment, and fills it with zeros. Returns
  // false if there is not enough memory, or too little would be left for rings.
  bool zero(uint32_t segment, uint64_t bytes);
  // Gives the segment's memory back to the file system, if its pages are small.
  bool empty(uint32_t segment, uint64_t bytes) const;

  uint32_t count() const { return words_.parts().granules; }
  std::byte* at(uint32_t segment) const { return words_.memory_of(segment); }
  // Returns how many bytes of memory a segment of `bytes` bytes takes.
  uint64_t whole_bytes(uint64_t bytes) const {
    return granules_for(bytes) * words_.parts().granule_bytes;
  }
  SegmentRecord& record(uint32_t segment) const { return words_.segment_records()[segment]; }
  // Calls `function` with each segment, by its number and one, of which the device in this slot
  // says that it uses it: its engine, or a thread that has a lane. 0: none.
  template <class Function>
  void for_each_hold(uint32_t slot, Function&& function) const {
    const SlotHold& hold = words_.slot(slot).hold;
    function(hold.segment.load(std::memory_order_acquire));
    const uint32_t lanes = std::min(hold.lanes.load(std::memory_order_acquire), max_lanes);
    for (uint32_t lane = 0; lane < lanes; ++lane) {
      function(words_.lane_hold(slot, lane).segment.load(std::memory_order_acquire));
    }
  }
  bool holds(uint32_t slot, uint32_t segment) const {
    bool found = false;
    for_each_hold(slot, [&](uint32_t held) { found = found || held == segment + 1; });
    return found;
  }

 private:
  uint64_t granules_for(uint64_t bytes) const {
    if (elsewhere_) return bytes > 0 ? 1 : 0;
    const uint64_t granule_bytes = words_.parts().granule_bytes;
    return bytes / granule_bytes + (bytes % granule_bytes != 0 ? 1 : 0);
  }
  uint32_t taken_from(uint32_t segment, bool& all_visible);
  bool leaves_room_for_rings() const;

  const Mapping& mapping_;
  const BackingFile& file_;
  const SharedWords& words_;
  Slots& slots_;
  const bool elsewhere_;
};

}  // namespace urma::drivers::cxl
