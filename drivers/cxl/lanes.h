// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "drivers/cxl/holder.h"
#include "urma/core/time.h"

namespace urma::drivers::cxl {

// This device's lanes: gives each the line in which its thread says which segment it uses, and
// looks every 10 ms whether the processes to whose memory lanes lead are alive, because memory does
// not show that. Only the thread that runs the engine calls it.
class Lanes {
 public:
  Lanes(const SharedWords& words, Slots& slots, Holder& holder);

  // As Ways::open_lane, to the device in this slot and generation.
  Laned open(uint32_t slot, uint32_t generation, const MemoryRange& range, MappedLane& lane);
  void close(const MappedLane& lane);

  // Returns when `look` is to be called next.
  Time due() const { return due_; }
  void look(Time now);

 private:
  const SharedWords& words_;
  Slots& slots_;
  Holder& holder_;
  std::array<uint32_t, max_lanes> to_;  // the slots to which lanes lead; no_slot: it is not open
  Time due_ = never;
};

}  // namespace urma::drivers::cxl
