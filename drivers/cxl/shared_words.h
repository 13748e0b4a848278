// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/bell.h"
#include "drivers/cxl/caches.h"
#include "drivers/cxl/layout.h"

namespace urma::drivers::cxl {

// Where the parts that layout.h describes lie in a mapped window, and the words that processes
// share there: reads and writes them past the processor's caches where these are not coherent. Owns
// nothing; the mapping outlives it. It does not know which process owns what. No word that is read
// from there is used as an address or an offset.
//
// Called by any thread; any of the words may change at any time.
class SharedWords {
 public:
  struct Memory {
    std::byte* base = nullptr;     // what the process works on: the mapping, or a copy of it
    std::byte* mapping = nullptr;  // what all processes map
    Caches* caches = nullptr;      // not set where memory is coherent
  };
  SharedWords() = default;
  SharedWords(const Memory& memory, const Parts& parts) : memory_(memory), parts_(parts) {}

  // Later loads of these bytes see what other processes have written.
  void refresh(const void* at, size_t bytes) const {
    if (memory_.caches != nullptr) memory_.caches->refresh(at, bytes);
  }
  // Other processes can see what this one has stored there, before any later store.
  void write_back(const void* at, size_t bytes) const {
    if (memory_.caches != nullptr) memory_.caches->write_back(at, bytes);
  }
  // Returns the value that was stored last, by whichever process.
  template <class Value>
  Value seen(const std::atomic<Value>& word) const {
    refresh(&word, sizeof word);
    return word.load(std::memory_order_acquire);
  }
  // Other processes see the value before any later store.
  template <class Value>
  void store(std::atomic<Value>& word, Value value) const {
    word.store(value, std::memory_order_release);
    write_back(&word, sizeof word);
  }

  const Parts& parts() const { return parts_; }
  Header& header() const { return at<Header>(0); }
  Changes& changes() const { return at<Changes>(line_bytes); }
  Slot& slot(uint32_t slot) const { return (&at<Slot>(slots_at))[slot]; }
  uint32_t generation(uint32_t slot) const { return seen(this->slot(slot).record.generation); }
  RingRecord& ring_record(uint32_t ring) const { return (&at<RingRecord>(records_at))[ring]; }
  SegmentRecord* segment_records() const { return &at<SegmentRecord>(parts_.segments_at); }
  // Only where there are segments.
  LaneHold& lane_hold(uint32_t slot, uint32_t lane) const {
    return (&at<LaneHold>(parts_.lanes_at))[slot * max_lanes + lane];
  }
  Ring& ring(uint32_t ring) const {
    return at<Ring>(parts_.rings_at + uint64_t{ring} * ring_bytes);
  }
  std::byte* memory_of(uint32_t granule) const {
    return memory_.base + parts_.memory_at + granule * parts_.granule_bytes;
  }
  // Returns the bell of a slot, at which processes of this kernel sleep. Its word is accessed
  // without the simulated or non-coherent caches.
  Bell bell_of(uint32_t slot) const {
    return Bell(reinterpret_cast<Slot*>(memory_.mapping + slots_at)[slot].bell.word);
  }

  std::byte* base() const { return memory_.base; }
  // Returns where in the window, and in its file, this byte lies.
  uint64_t offset_of(const std::byte* byte) const {
    return static_cast<uint64_t>(byte - memory_.base);
  }
  Caches* caches() const { return memory_.caches; }
  bool coherent() const { return memory_.caches == nullptr; }

 private:
  template <class Part>
  Part& at(uint64_t offset) const {
    return *reinterpret_cast<Part*>(memory_.base + offset);
  }

  Memory memory_;
  Parts parts_;
};

}  // namespace urma::drivers::cxl
