#pragma once

#include <cstdint>
#include <optional>

namespace urma::ordering {

// Decides when the completions of one queue may be shown. A signalled completion is withheld until
// every unsignalled work posted before it is done, because it tells the application that those
// succeeded and frees their berths. A failure is never withheld: it implies nothing. In order, any
// completion is withheld until all works before it are done.
//
// Works are named by their berths, which are theirs until they are shown.
class CompleteGate {
 public:
  static constexpr uint16_t none = UINT16_MAX;

  struct Slot {
    uint64_t number;    // in post order
    uint16_t previous;  // neighbours among what is not shown yet, in post order
    uint16_t next;
    uint8_t is;  // Mark, together
  };

  // One slot for each berth. None is looked at before its berth was posted.
  explicit CompleteGate(Slot* slots) : slots_(slots) {}

  // The next work of the queue.
  void posted(uint16_t berth, bool signalled, bool ordered = false);

  // A work is done. True: its completion, if it has one, is shown now. False: it is withheld, or
  // (unsignalled and successful) has none.
  bool done(uint16_t berth, bool failed);

  // To be called after `done` until it has nothing: a withheld completion that is shown now.
  std::optional<uint16_t> next_released();

 private:
  enum Mark : uint8_t { withheld = 1, unsignalled = 2, in_order = 4 };

  bool blocks(const Slot& slot) const {
    return (slot.is & (unsignalled | in_order)) != 0 && (slot.is & withheld) == 0;
  }

  void remove(uint16_t berth);

  Slot* slots_;
  uint64_t posted_ = 0;
  uint16_t oldest_ = none;
  uint16_t newest_ = none;
  uint16_t gate_ = none;     // the oldest open work that blocks
  uint16_t release_ = none;  // what is withheld from here to the gate is to be shown
};

}  // namespace urma::ordering
