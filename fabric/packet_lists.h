// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/region.h"
#include "fabric/packet.h"
#include "urma/core/time.h"

namespace urma::fabric {

// The packets that a switch holds, in lists. A packet is named by the number of its slot, and is in
// one list at a time. Memory is allocated once.
class PacketLists {
 public:
  static constexpr uint32_t none = 0;  // slots are counted from 1

  struct alignas(64) Slot {
    Packet packet;
    Time when;  // its arrival; once decided, its departure
    uint32_t next;
  };
  struct List {
    uint32_t first = none;
    uint32_t last = none;
  };

  explicit PacketLists(uint32_t packets) : packets_(packets), slots_(packets) {}

  // Returns how many more packets there is room for.
  uint32_t vacant() const { return packets_ - used_; }
  Slot& operator[](uint32_t slot) { return slots_[slot - 1]; }
  const Slot& operator[](uint32_t slot) const { return slots_[slot - 1]; }

  // Takes a vacant slot for the packet. There must be one.
  uint32_t take(const Packet& packet) {
    uint32_t slot = vacant_;
    if (slot != none) {
      vacant_ = (*this)[slot].next;
    } else {
      slot = ++touched_;
    }
    ++used_;
    (*this)[slot].packet = packet;
    return slot;
  }
  void put_back(uint32_t slot) {
    (*this)[slot].next = vacant_;
    vacant_ = slot;
    --used_;
  }

  void append(List& list, uint32_t slot) {
    (*this)[slot].next = none;
    (list.last == none ? list.first : (*this)[list.last].next) = slot;
    list.last = slot;
  }
  // The list must not be empty.
  uint32_t remove_first(List& list) {
    const uint32_t slot = list.first;
    list.first = (*this)[slot].next;
    if (list.first == none) list.last = none;
    return slot;
  }

 private:
  uint32_t packets_;
  RegionArray<Slot> slots_;
  uint32_t vacant_ = none;
  uint32_t touched_ = 0;  // slots beyond these have never been used
  uint32_t used_ = 0;
};

}  // namespace urma::fabric
