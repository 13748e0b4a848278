// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

namespace urma::ordering {

// Decides when the completions of one queue may be shown to the application. A signalled completion
// implies that all unsignalled works posted before it succeeded, and makes their berths vacant; so
// it is withheld until these works are done. A failure implies nothing and is never withheld. With
// JettyOptions::in_order, a completion is withheld until all works before it are done.
//
// It knows works only by their berths, which they keep until they are shown. Only the thread that
// runs the engine calls it.
class CompleteGate {
 public:
  static constexpr uint16_t none = UINT16_MAX;

  struct Slot {
    uint64_t number;    // in post order; this and the next two only if the slot is linked
    uint16_t previous;  // neighbours among the linked works not shown yet, in post order
    uint16_t next;
    uint8_t is;  // a set of Mark
  };

  // There is one slot for each berth. A slot is not read before its berth has been posted.
  explicit CompleteGate(Slot* slots) : slots_(slots) {}

  // Returns whether no open work blocks others, so that works which are done in post order, all
  // successfully, need not be reported.
  bool idle() const { return gate_ == none && release_ == none; }

  // Reports that the next work of the queue was posted.
  void posted(uint16_t berth, bool signalled, bool ordered = false) {
    const unsigned is =
        (signalled ? 0u : unsigned{unsignalled}) | (ordered ? unsigned{in_order} : 0u);
    // Most queues have signalled works only. As long as no open work blocks, such a work can
    // neither be withheld nor withhold another.
    if (gate_ == none && is == 0) {
      slots_[berth].is = 0;
    } else {
      link(berth, is);
    }
  }

  // Reports that a work is done. Returns true if its completion is to be shown now; false if it is
  // withheld, or if the work, unsignalled and successful, has none.
  bool done(uint16_t berth, bool failed) {
    return (slots_[berth].is & linked) == 0 || linked_done(berth, failed);
  }

  // Returns a withheld completion that is to be shown now. To be called after `done` until it
  // returns nothing.
  std::optional<uint16_t> next_released() {
    return release_ == none ? std::nullopt : next_withheld();
  }

 private:
  enum Mark : uint8_t { withheld = 1, unsignalled = 2, in_order = 4, linked = 8 };

  bool blocks(const Slot& slot) const {
    return (slot.is & (unsignalled | in_order)) != 0 && (slot.is & withheld) == 0;
  }

  void link(uint16_t berth, unsigned is);
  bool linked_done(uint16_t berth, bool failed);
  std::optional<uint16_t> next_withheld();
  void remove(uint16_t berth);

  Slot* slots_;
  uint64_t posted_ = 0;
  uint16_t newest_ = none;
  uint16_t gate_ = none;     // the oldest open work that blocks
  uint16_t release_ = none;  // withheld completions from here to the gate are to be shown
};

}  // namespace urma::ordering
