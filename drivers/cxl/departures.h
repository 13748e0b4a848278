// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <memory>

#include "drivers/cxl/ring.h"
#include "drivers/cxl/rings.h"
#include "drivers/packet_port.h"

namespace urma::drivers::cxl {

// The rings into which a device sends, at most one to each slot: writes messages, and wakes the
// receivers that sleep. Owns the sending end of each ring. Does not look for rings: CxlPort adds
// them. Only the thread that runs the engine calls it.
class Departures {
 public:
  // `slot`: this device's own. `counters` outlives this object.
  Departures(const SharedWords& words, uint32_t slot, PortCounters& counters);

  // Returns whether there is a ring to this slot.
  bool lead_to(uint32_t slot) const { return static_cast<bool>(outbound_[slot].ring); }
  // Returns the generation of the slot's device that the ring leads to.
  uint32_t generation(uint32_t slot) const { return outbound_[slot].to_generation; }

  // ---- sending. If no ring leads to the slot, `begin` returns null, and no message fits into the
  // next line; the other functions need a ring.

  // As Ways.
  bool reserve(uint32_t slot, uint32_t bytes) { return outbound_[slot].ring.reserve(bytes); }
  std::byte* begin(uint32_t slot, uint32_t bytes);
  void end();
  const NextLine* next_line(uint32_t slot) const { return &outbound_[slot].ring.line(); }
  void sent_line(uint32_t slot, uint32_t bytes) {
    outbound_[slot].ring.sent_line(bytes);
    touch(slot);
    ++counters_.frames_sent;
  }
  void notify();
  // Writes this frame, which has `bytes`, into the ring. Returns false, and has no effect, if the
  // ring has no room for it.
  bool write(uint32_t slot, const TxFrame& frame, uint32_t bytes);
  // Returns the lines that the receiver has taken, and whether these are all.
  uint64_t taken(uint32_t slot) { return outbound_[slot].ring.taken(); }
  bool all_taken(uint32_t slot) { return outbound_[slot].ring.empty(); }

  // ---- which rings there are

  // Begins to send into a ring of this device, if its receiver lives.
  void add(uint32_t ring, const RingOwner& owner);
  // Gives up the rings whose receivers are over.
  void let_go_of_ended();
  void let_go_of_all();
  // Forgets all rings without writing to the window.
  void forget_all();

 private:
  static constexpr uint32_t none = UINT32_MAX;

  // The sending end of the ring to one slot.
  struct Outbound {
    RingWriter ring;
    uint32_t index = none;
    uint32_t serial = 0;
    uint32_t to_generation = 0;
    uint32_t rung = 0;     // Bell::ring
    bool touched = false;  // written to since the last `notify`
  };
  void touch(uint32_t slot) {
    if (std::exchange(outbound_[slot].touched, true)) return;
    if (touched_count_ == touched_.size()) notify();
    touched_[touched_count_++] = slot;
  }
  void let_go(Outbound& outbound);

  const SharedWords& words_;
  const uint32_t slot_;
  PortCounters& counters_;
  std::unique_ptr<Outbound[]> outbound_;         // by slot
  RegionArray<MarkedLines> marked_{slot_count};  // likewise; memory where it is used
  std::array<uint32_t, slot_count> touched_;
  uint32_t touched_count_ = 0;
  uint32_t begun_ = 0;  // slot
};

}  // namespace urma::drivers::cxl
