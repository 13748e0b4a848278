#pragma once

#include <cstdint>
#include <optional>

#include "urma/core/order.h"

namespace urma::ordering {

// Decides which works of one queue may begin (UB 5.5). A fenced one waits until the works before it
// are done, and those after it wait with it. A strong one waits for the relaxed and strong ones
// before it, unless all of them go where it goes and somebody there keeps the order: they are of
// one group. Nothing else waits for anything.
//
// Works are named by their berths. A work without order that is posted while no fence waits need
// not be told of. Zeros are an empty gate: it costs nothing until somebody asks for order.
// Slots may lie right behind it.
class alignas(uint32_t) SubmitGate {
 public:
  static constexpr uint32_t no_group = 0;

  struct Work {
    Order order = Order::none;
    Fence fence = Fence::none;
    bool fetches = false;       // a read or an atomic
    uint32_t group = no_group;  // of what has order
  };
  struct Slot {
    uint32_t group;
    uint16_t previous;  // neighbours in its list, plus one
    uint16_t next;
    uint8_t place;
    Order order;
    Fence fence;
    bool fetches;
  };
  // Works of the queue that are not done.
  struct Open {
    uint32_t works = 0;
    uint32_t fetching = 0;
  };

  // False: nothing of it was told, or all of that is done.
  bool busy() const { return fenced_.first != 0 || ordered_.first != 0; }

  // The next work of the queue; `open` are those before it. True: it begins now.
  bool posted(Slot* slots, uint16_t berth, const Work& work, Open open);
  // It is done, whether it had begun or not.
  void done(Slot* slots, uint16_t berth);
  // To be called some time after `done` until it has nothing: a work that begins now. What is
  // posted before then does not overtake it.
  std::optional<uint16_t> next_released(Slot* slots, Open open);
  // Whether it was told of and has not begun.
  static bool holds(const Slot& slot) { return slot.place == fenced || slot.place == waiting; }

 private:
  enum Place : uint8_t { nowhere, fenced, waiting, begun };
  struct List {
    uint16_t first = 0;  // berths, plus one
    uint16_t last = 0;
  };

  bool enter(Slot* slots, uint16_t berth);
  bool satisfied(Fence fence, Open open) const;
  void leave_fence(Slot* slots, uint16_t berth);
  void move_edge(Slot* slots);
  static void append(Slot* slots, List& list, uint16_t place);
  static void remove(Slot* slots, List& list, uint16_t place);

  List fenced_;   // a fence that waits, and all behind it
  List ordered_;  // relaxed and strong works that are not done
  // The first of these that has another group before it: what is strong from there on waits.
  uint16_t edge_ = 0;
  uint16_t release_ = 0;  // from here to the edge, what waits begins
  uint16_t fenced_count_ = 0;
  uint16_t fenced_fetching_ = 0;
};

}  // namespace urma::ordering
