// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "base/region.h"
#include "drivers/cxl/layout.h"
#include "drivers/segment_memory.h"

namespace urma::drivers::cxl {

// A request to map a segment, with the values that are compared with the owner's.
struct FileRequest {
  static constexpr uint32_t first_word = 0x31'4f'48'55;  // "UHO1"
  uint32_t word;
  uint32_t segment;
  uint32_t file;  // of SegmentRecord
  uint32_t token_id;
  uint32_t token;
  uint32_t slot;  // the slot that asks, whose bell is rung
};

// The segments of a device, each in a sealed file of its own. The files have no names, so a process
// can map one only if it was given the descriptor. The rights are stored in this object, where no
// other process can change them. Segments are named by the number of their record in the window.
// `make` must not be called in a pass.
class OwnFiles {
 public:
  explicit OwnFiles(uint32_t segments) : files_(segments) {}
  OwnFiles(const OwnFiles&) = delete;
  OwnFiles& operator=(const OwnFiles&) = delete;
  ~OwnFiles();

  // Reserves address space. Returns null if there is none.
  std::byte* reserve(uint32_t segment, uint64_t bytes);
  // Makes the memory of the segment, which is zeroed. Returns false if the system has no memory or
  // no descriptor left.
  bool make(uint32_t segment);
  // Returns the file's number, or 0 if the segment does not grant reading: its file is given to no
  // device, because a process that maps it can read it. If the segment does not grant writing, the
  // file is sealed, so that no device can map it for writing.
  uint32_t grant(uint32_t segment, const SegmentMemory::Grant& grant);
  // From now on the file is given to no device.
  void close(uint32_t segment) { files_[segment].open = false; }
  void close_all();
  // Frees the memory and the address space of a closed segment. Not in a pass: large ones take
  // long.
  void release(uint32_t segment);
  // Frees also the record of the segment.
  void drop(uint32_t segment);

  std::byte* at(uint32_t segment) const { return files_[segment].base; }
  uint64_t bytes(uint32_t segment) const { return files_[segment].bytes; }
  // Returns whether this file of the segment is given to devices that show a token.
  bool is_open(uint32_t segment, uint32_t number) const {
    return files_[segment].open && files_[segment].number == number;
  }
  // The devices that were given the file, which use it without a hold: a bit for the slot of each.
  using SlotSet = std::array<uint64_t, slot_count / 64>;
  static bool among(const SlotSet& users, uint32_t slot) {
    return (users[slot / 64] >> slot % 64 & 1) != 0;
  }
  const SlotSet& users(uint32_t segment) const { return files_[segment].users; }
  bool handed_over(uint32_t segment) const { return users(segment) != SlotSet{}; }
  // Returns whether it is closed, and devices that were given it may still map it.
  bool left_over(uint32_t segment) const { return !files_[segment].open && handed_over(segment); }

  // Returns whether the token is valid, or none is required.
  bool knows(uint32_t segment, uint32_t token) const {
    const SegmentMemory::Grant& grant = files_[segment].grant;
    const uint32_t newer = number(grant.token) ^ token;
    const uint32_t older = number(grant.older) ^ token;
    // Both values are compared in full, so that the time taken reveals nothing.
    return (static_cast<uint32_t>(newer == 0) | static_cast<uint32_t>(older == 0) |
            static_cast<uint32_t>(!grant.checked)) != 0;
  }

  // late: the segment or the file does not exist any more, or never did; this does not count as a
  // guess.
  enum class Answer : uint8_t { granted, bad_token, late, nonsense };
  // Answers a request. If the result is `granted`, the caller may hand over `descriptor`, which
  // this object still owns.
  Answer answer(const FileRequest& request, int& descriptor);

 private:
  struct File {
    std::byte* base;
    uint64_t bytes;
    uint32_t descriptor;  // and one
    uint32_t number;
    SegmentMemory::Grant grant;
    bool open;
    bool sealed;
    SlotSet users;
  };

  RegionArray<File> files_;
  uint32_t last_number_ = 0;
};

}  // namespace urma::drivers::cxl
