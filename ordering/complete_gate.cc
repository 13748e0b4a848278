#include "ordering/complete_gate.h"

#include "urma/base/assert.h"

namespace urma::ordering {

uint64_t CompleteGate::posted(uint16_t berth, bool signalled) {
  URMA_ASSERT(next_ - released_ <= mask_, "what is behind the gate still holds its berth");
  slot(next_) = {berth, signalled ? open_signalled : open_unsignalled};
  const uint64_t number = next_++;
  advance();
  return number;
}

bool CompleteGate::done(uint64_t number, bool signalled, bool failed) {
  if (number < gate_) return signalled || failed;
  if (signalled && !failed) {
    slot(number).mark = withheld;
    return false;
  }
  slot(number).mark = finished;
  advance();
  return failed;
}

void CompleteGate::advance() {
  while (gate_ < next_ && slot(gate_).mark != open_unsignalled) ++gate_;
  // Nothing withheld in between is the common case, and then there is nothing to look for.
  if (gate_ == next_ && released_ + 1 == gate_ && slot(released_).mark != withheld) ++released_;
}

std::optional<uint16_t> CompleteGate::next_released() {
  while (released_ < gate_) {
    const Slot& passed = slot(released_++);
    if (passed.mark == withheld) return passed.berth;
  }
  return std::nullopt;
}

}  // namespace urma::ordering
