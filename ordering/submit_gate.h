// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "urma/core/order.h"

namespace urma::ordering {

// Decides which works of one queue may begin (UB 5.5). A fenced work waits until the works before
// it are done, and later works wait with it. A strong work waits for the relaxed and strong ones
// before it, unless they all belong to its group: they go to the same target, which keeps their
// order. No other work waits.
//
// It knows works only by their berths. A work without order need not be reported while no fence
// waits. All zeros are an empty gate, so it costs nothing until a work asks for order. Its slots
// may lie directly behind it. Only the thread that runs the engine calls it.
class alignas(uint32_t) SubmitGate {
 public:
  static constexpr uint32_t no_group = 0;

  struct Work {
    Order order = Order::none;
    Fence fence = Fence::none;
    bool fetches = false;       // a read or an atomic
    uint32_t group = no_group;  // for a work with order
  };
  struct Slot {
    uint32_t group;
    uint16_t previous;  // neighbours in its list, + 1
    uint16_t next;
    uint8_t place;
    Order order;
    Fence fence;
    bool fetches;
  };
  // The numbers of works of the queue that are not done.
  struct Open {
    uint32_t works = 0;
    uint32_t fetching = 0;
  };

  // Returns false if no reported work is outstanding.
  bool busy() const { return fenced_.first != 0 || ordered_.first != 0; }

  // Reports that the next work of the queue was posted; `open` counts the works before it that are
  // not done. Returns true if the work begins now.
  bool posted(Slot* slots, uint16_t berth, const Work& work, Open open);
  // Reports that a work is done, whether or not it had begun.
  void done(Slot* slots, uint16_t berth);
  // Returns a work that begins now. To be called some time after `done`, until it returns nothing.
  // A work that is posted in between does not overtake.
  std::optional<uint16_t> next_released(Slot* slots, Open open);
  // Returns whether a reported work has not begun.
  static bool holds(const Slot& slot) { return slot.place == fenced || slot.place == waiting; }

 private:
  enum Place : uint8_t { nowhere, fenced, waiting, begun };
  struct List {
    uint16_t first = 0;  // berth + 1; 0 for none
    uint16_t last = 0;
  };

  bool enter(Slot* slots, uint16_t berth);
  bool satisfied(Fence fence, Open open) const;
  void leave_fence(Slot* slots, uint16_t berth);
  void move_edge(Slot* slots);
  static void append(Slot* slots, List& list, uint16_t place);
  static void remove(Slot* slots, List& list, uint16_t place);

  List fenced_;   // the fenced work that waits, and all works behind it
  List ordered_;  // relaxed and strong works that are not done
  // The first ordered work with a work of another group before it: strong works from there on wait.
  uint16_t edge_ = 0;
  uint16_t release_ = 0;  // waiting works from here to the edge begin
  uint16_t fenced_count_ = 0;
  uint16_t fenced_fetching_ = 0;
};

}  // namespace urma::ordering
