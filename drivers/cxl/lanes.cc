// SPDX-License-Identifier: Apache-2.0
#include "drivers/cxl/lanes.h"

#include <algorithm>
#include <chrono>

namespace urma::drivers::cxl {
namespace {

constexpr Duration looks_apart = std::chrono::milliseconds(10);

}  // namespace

Lanes::Lanes(const SharedWords& words, Slots& slots, Holder& holder)
    : words_(words), slots_(slots), holder_(holder) {
  to_.fill(no_slot);
}

Laned Lanes::open(uint32_t slot, uint32_t generation, const MemoryRange& range, MappedLane& lane) {
  if (!holder_.maps(range)) return Laned::unmapped;
  const auto first_free = static_cast<uint32_t>(std::ranges::find(to_, no_slot) - to_.begin());
  const uint32_t number = lane.hold != nullptr ? lane.number : first_free;
  if (number == max_lanes) return Laned::none_free;
  const Holder::Found found = holder_.find(slot, generation, range);
  if (found.at == nullptr || !slots_.owned()) return Laned::refused;
  std::atomic<uint32_t>& hold = words_.lane_hold(slots_.own(), number).segment;
  hold.store(0, std::memory_order_relaxed);
  SlotHold& own = *slots_.own_hold();
  own.lanes.store(std::max(own.lanes.load(std::memory_order_relaxed), number + 1),
                  std::memory_order_release);
  lane = holder_.lane_to(found, slot, generation);
  lane.bytes = range.bytes;
  lane.rights = range.wanted;
  lane.hold = &hold;
  lane.number = number;
  to_[number] = slot;
  due_ = Time{};
  return Laned::opened;
}

void Lanes::close(const MappedLane& lane) {
  if (slots_.owned()) lane.hold->store(0, std::memory_order_release);
  to_[lane.number] = no_slot;
  if (std::ranges::count(to_, no_slot) == max_lanes) due_ = never;
}

void Lanes::look(Time now) {
  due_ = now + looks_apart;
  for (const uint32_t slot : to_) {
    if (slot != no_slot) slots_.inhabited(slot);  // ends the slot if not
  }
}

}  // namespace urma::drivers::cxl
