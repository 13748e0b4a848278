// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "drivers/cxl/handed_over.h"
#include "drivers/cxl/mapping.h"
#include "drivers/cxl/slots.h"
#include "drivers/packet_port.h"

namespace urma::drivers::cxl {

// Finds and holds segments of other devices, so that this device's processor copies to and from
// them: checks owner, incarnation, token, rights and bounds against the segment's record. It holds
// one segment at a time. This is the data path: it takes no lock. Only the thread that runs the
// engine calls it.
class Holder {
 public:
  // `handed_over`: null where segments lie in the window.
  Holder(const Mapping& mapping, const Slots& slots, HandedOver* handed_over)
      : mapping_(mapping),
        slots_(slots),
        handed_over_(handed_over),
        segments_(mapping.words().segment_records()),
        granules_(mapping.words().parts().granules) {}

  // Returns where this part of a segment of the device in this slot and generation lies, which may
  // be in another slot of the same device, if it has several engines; the
  // address is valid until `let_go`. Returns null if the access is not allowed, or the memory is
  // not mapped here. Prepares further uses of the segment, if it lies in the window.
  std::byte* hold(uint32_t slot, uint32_t generation, const MemoryRange& range,
                  PreparedSegment& prepared) {
    const uint32_t segment = segment_of(range);
    if (segment >= granules_ || mapping_.lost()) return nullptr;
    // This device first stores which segment it holds, and then reads the record; the owner first
    // closes the record, and then reads which segments are held.
    slots_.own_hold()->segment.store(segment + 1, std::memory_order_relaxed);
    slots_.barriers().before_use();
    const Found found = allowed(segment, slot, generation, range);
    held_ = segment;
    held_epoch_ = found.epoch;
    if (found.at == nullptr) {
      let_go();
    } else if (handed_over_ == nullptr) {
      prepared = prepare(found, slot, generation, range);
    }
    return found.at;
  }
  // Returns false if the segment was closed meanwhile: bytes that were copied to it may have been
  // lost.
  bool let_go() {
    const bool still = segments_[held_].epoch.load(std::memory_order_acquire) == held_epoch_;
    slots_.own_hold()->segment.store(0, std::memory_order_release);
    return still;
  }

  // Where a part of a segment lies, for a thread that holds it by itself.
  struct Found {
    std::byte* at = nullptr;
    uint64_t epoch = 0;  // of the segment's record, when it was looked at
    uint32_t segment = 0;
    uint64_t bytes = 0;                  // of the whole segment
    Rights rights = Rights::local_only;  // that this processor may use
  };
  // As `hold`, but the thread holds the segment. Call it only if `maps` returns true.
  Found find(uint32_t slot, uint32_t generation, const MemoryRange& range) {
    return allowed(segment_of(range), slot, generation, range);
  }
  // Returns what a thread needs to use the found part by itself, but for the place of its hold.
  MappedLane lane_to(const Found& found, uint32_t slot, uint32_t generation) const;
  // Returns whether this is a part of a segment in the window, which stays mapped.
  bool maps(const MemoryRange& range) const {
    return handed_over_ == nullptr && !mapping_.lost() && segment_of(range) < granules_;
  }

 private:
  PreparedSegment prepare(const Found& found, uint32_t slot, uint32_t generation,
                          const MemoryRange& range) const;
  Found allowed(uint32_t segment, uint32_t slot, uint32_t generation, const MemoryRange& range);
  // Returns whether the devices in both slots are engines of one device, of which the former is
  // there in this generation.
  bool are_siblings(uint32_t owner, uint32_t owner_generation, uint32_t slot) const;
  static uint64_t offset_in_segment(const MemoryRange& range) {
    return range.address & ((uint64_t{1} << offset_bits) - 1);
  }
  // Returns a number that no segment has if the address is not one in the window.
  static uint32_t segment_of(const MemoryRange& range) {
    if ((range.address & in_the_window) == 0) return UINT32_MAX;
    return static_cast<uint32_t>((range.address & ~in_the_window) >> offset_bits);
  }

  const Mapping& mapping_;
  const Slots& slots_;
  HandedOver* const handed_over_;
  SegmentRecord* const segments_;
  const uint32_t granules_;
  uint32_t held_ = 0;
  uint64_t held_epoch_ = 0;  // of the record, when it was looked at
};

}  // namespace urma::drivers::cxl
