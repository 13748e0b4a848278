// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>

#include "base/region.h"

namespace urma {

// A queue of members that wait for their turn, first come, first served. Each member is in it at
// most once. Used by one thread at a time.
class Turns {
 public:
  explicit Turns(uint32_t members)
      : ring_(std::bit_ceil(members)),
        waits_(members),
        mask_(static_cast<uint32_t>(ring_.size()) - 1) {}

  uint32_t size() const { return count_; }
  void add(uint32_t member) {
    if (waits_[member]) return;
    waits_[member] = true;
    ring_[(first_ + count_++) & mask_] = member;
  }
  // Removes and returns the member that has waited longest. There must be one.
  uint32_t take() {
    const uint32_t member = ring_[first_++ & mask_];
    --count_;
    waits_[member] = false;
    return member;
  }

 private:
  RegionArray<uint32_t> ring_;
  RegionArray<bool> waits_;
  uint32_t mask_;
  uint32_t first_ = 0;
  uint32_t count_ = 0;
};

}  // namespace urma
