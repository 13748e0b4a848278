// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "drivers/cxl/backing_file.h"
#include "drivers/cxl/shared_words.h"
#include "drivers/cxl/slots.h"

namespace urma::drivers::cxl {

// The two devices that a ring belongs to; the serial is 0 if there are none, or the record is being
// changed.
struct RingOwner {
  uint32_t serial;
  uint32_t from;  // slots
  uint32_t to;
  uint32_t from_generation;
  uint32_t to_generation;
};
// Reads a ring's record without the window's lock.
RingOwner owner_of(const SharedWords& words, uint32_t ring);
// Notes in a ring that one end will not access it any longer, unless the ring has another owner by
// now.
void mark_let_go(const SharedWords& words, uint32_t ring, uint32_t serial,
                 std::atomic<uint32_t>& mark);

// Gives the rings of a window to pairs of devices, and takes back those that neither end uses any
// more. It does not know messages: RingWriter and RingReader do. Takes the window's lock, but does
// not wait for it. Used by one thread at a time.
class Rings {
 public:
  Rings(const BackingFile& file, const SharedWords& words, Slots& slots)
      : file_(file), words_(words), slots_(slots) {}

  // Makes the two rings of a pair, whose first slot is the caller's. not_now: another process has
  // the lock. no_ring: all rings are in use. no_memory: the file system has no memory for two more
  // rings. nobody_there: no running process holds the other slot.
  enum class Claim : uint8_t { made, not_now, no_ring, no_memory, nobody_there };
  Claim claim_pair(uint32_t from, uint32_t to);

 private:
  bool free_again(uint32_t ring) const;
  std::optional<uint32_t> free_ring(uint32_t after) const;
  bool take_memory(uint32_t ring) const;
  void give(uint32_t ring, uint32_t from, uint32_t to);

  const BackingFile& file_;
  const SharedWords& words_;
  Slots& slots_;
};

}  // namespace urma::drivers::cxl
