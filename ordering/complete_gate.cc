#include "ordering/complete_gate.h"

namespace urma::ordering {

void CompleteGate::posted(uint16_t berth, bool signalled) {
  slots_[berth] = {.number = posted_++,
                   .previous = newest_,
                   .next = none,
                   .mark = signalled ? open_signalled : open_unsignalled};
  (newest_ != none ? slots_[newest_].next : oldest_) = berth;
  newest_ = berth;
  if (!signalled && gate_ == none) gate_ = berth;
}

bool CompleteGate::done(uint16_t berth, bool failed) {
  Slot& slot = slots_[berth];
  if (slot.mark == open_signalled) {
    const bool passed = gate_ == none || slot.number < slots_[gate_].number;
    if (!passed && !failed) {
      slot.mark = withheld;
      return false;
    }
    remove(berth);
    return true;
  }
  if (berth == gate_) {
    // The gate moves on to the next open unsignalled work; each work is passed over once.
    release_ = slot.next;
    do gate_ = slots_[gate_].next;
    while (gate_ != none && slots_[gate_].mark != open_unsignalled);
  }
  remove(berth);
  return failed;
}

std::optional<uint16_t> CompleteGate::next_released() {
  while (release_ != gate_ && release_ != none) {
    const uint16_t berth = release_;
    release_ = slots_[berth].next;
    if (slots_[berth].mark != withheld) continue;
    remove(berth);
    return berth;
  }
  release_ = none;
  return std::nullopt;
}

void CompleteGate::remove(uint16_t berth) {
  const Slot& slot = slots_[berth];
  (slot.previous != none ? slots_[slot.previous].next : oldest_) = slot.next;
  (slot.next != none ? slots_[slot.next].previous : newest_) = slot.previous;
}

}  // namespace urma::ordering
