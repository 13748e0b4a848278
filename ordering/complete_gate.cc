// SPDX-License-Identifier: Apache-2.0
#include "ordering/complete_gate.h"

namespace urma::ordering {

void CompleteGate::link(uint16_t berth, unsigned is) {
  slots_[berth] = {.number = posted_++,
                   .previous = newest_,
                   .next = none,
                   .is = static_cast<uint8_t>(is | linked)};
  if (newest_ != none) slots_[newest_].next = berth;
  newest_ = berth;
  if (gate_ == none && is != 0) gate_ = berth;
}

bool CompleteGate::linked_done(uint16_t berth, bool failed) {
  Slot& slot = slots_[berth];
  const bool shows = (slot.is & unsignalled) == 0 || failed;
  const bool behind = gate_ != none && slot.number > slots_[gate_].number;
  if (behind && shows && (!failed || (slot.is & in_order) != 0)) {
    slot.is |= withheld;
    return false;
  }
  if (berth == gate_) {
    // The gate moves on to the next open work that blocks; each work is passed only once.
    release_ = slot.next;
    do gate_ = slots_[gate_].next;
    while (gate_ != none && !blocks(slots_[gate_]));
  }
  remove(berth);
  return shows;
}

std::optional<uint16_t> CompleteGate::next_withheld() {
  while (release_ != gate_ && release_ != none) {
    const uint16_t berth = release_;
    release_ = slots_[berth].next;
    if ((slots_[berth].is & withheld) == 0) continue;
    remove(berth);
    return berth;
  }
  release_ = none;
  return std::nullopt;
}

void CompleteGate::remove(uint16_t berth) {
  const Slot& slot = slots_[berth];
  if (slot.previous != none) slots_[slot.previous].next = slot.next;
  (slot.next != none ? slots_[slot.next].previous : newest_) = slot.previous;
}

}  // namespace urma::ordering
