// SPDX-License-Identifier: Apache-2.0
#include "ordering/submit_gate.h"

namespace urma::ordering {

bool SubmitGate::posted(Slot* slots, uint16_t berth, const Work& work, Open open) {
  slots[berth] = {.group = work.group,
                  .previous = 0,
                  .next = 0,
                  .place = nowhere,
                  .order = work.order,
                  .fence = work.fence,
                  .fetches = work.fetches};
  const bool behind = fenced_.first != 0;
  if (!behind && satisfied(work.fence, open)) return enter(slots, berth);
  slots[berth].place = fenced;
  append(slots, fenced_, static_cast<uint16_t>(berth + 1));
  ++fenced_count_;
  fenced_fetching_ = static_cast<uint16_t>(fenced_fetching_ + work.fetches);
  return false;
}

// Works behind the fence are open as well, and are not counted.
bool SubmitGate::satisfied(Fence fence, Open open) const {
  if (fence == Fence::all) return open.works == fenced_count_;
  return fence == Fence::none || open.fetching == fenced_fetching_;
}

// No fence holds this work back any more.
bool SubmitGate::enter(Slot* slots, uint16_t berth) {
  Slot& slot = slots[berth];
  if (slot.order == Order::none) {
    slot.place = nowhere;
    return true;
  }
  const auto place = static_cast<uint16_t>(berth + 1);
  const bool first = ordered_.first == 0;
  const bool among_its_own = edge_ == 0 && !first && slot.group != no_group &&
                             slots[ordered_.first - 1].group == slot.group;
  append(slots, ordered_, place);
  if (!first && !among_its_own && edge_ == 0) edge_ = place;
  // Earlier works that were released but not yet taken begin first.
  const bool begins = first || (among_its_own && release_ == 0) || slot.order == Order::relaxed;
  slot.place = begins ? begun : waiting;
  return begins;
}

void SubmitGate::done(Slot* slots, uint16_t berth) {
  Slot& slot = slots[berth];
  const auto place = static_cast<uint16_t>(berth + 1);
  if (slot.place == fenced) {
    leave_fence(slots, berth);
  } else if (slot.place != nowhere) {
    const bool at_edge = place == edge_;
    if (place == release_) release_ = slot.next;
    remove(slots, ordered_, place);
    if (at_edge) edge_ = slot.next;
    if (at_edge || edge_ == ordered_.first) move_edge(slots);
  }
  slot.place = nowhere;
}

// Restores the invariant that the works before the edge are of one group, or that there is only
// one.
void SubmitGate::move_edge(Slot* slots) {
  if (edge_ == 0) return;
  if (release_ == 0) release_ = edge_;
  const uint32_t group = slots[ordered_.first - 1].group;
  if (edge_ == ordered_.first) edge_ = slots[edge_ - 1].next;
  while (edge_ != 0 && group != no_group && slots[edge_ - 1].group == group) {
    edge_ = slots[edge_ - 1].next;
  }
}

std::optional<uint16_t> SubmitGate::next_released(Slot* slots, Open open) {
  while (release_ != edge_ && release_ != 0) {
    const auto berth = static_cast<uint16_t>(release_ - 1);
    release_ = slots[berth].next;
    if (slots[berth].place != waiting) continue;
    slots[berth].place = begun;
    return berth;
  }
  release_ = 0;
  while (fenced_.first != 0) {
    const auto berth = static_cast<uint16_t>(fenced_.first - 1);
    Slot& slot = slots[berth];
    if (!satisfied(slot.fence, open)) break;
    leave_fence(slots, berth);
    if (enter(slots, berth)) return berth;
  }
  return std::nullopt;
}

void SubmitGate::leave_fence(Slot* slots, uint16_t berth) {
  const Slot& slot = slots[berth];
  remove(slots, fenced_, static_cast<uint16_t>(berth + 1));
  --fenced_count_;
  fenced_fetching_ = static_cast<uint16_t>(fenced_fetching_ - slot.fetches);
}

void SubmitGate::append(Slot* slots, List& list, uint16_t place) {
  Slot& slot = slots[place - 1];
  slot.previous = list.last;
  slot.next = 0;
  (list.last != 0 ? slots[list.last - 1].next : list.first) = place;
  list.last = place;
}

void SubmitGate::remove(Slot* slots, List& list, uint16_t place) {
  const Slot& slot = slots[place - 1];
  (slot.previous != 0 ? slots[slot.previous - 1].next : list.first) = slot.next;
  (slot.next != 0 ? slots[slot.next - 1].previous : list.last) = slot.previous;
}

}  // namespace urma::ordering
