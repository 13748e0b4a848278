// SPDX-License-Identifier: Apache-2.0
#include "base/timer_wheel.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/assert.h"

namespace urma {
namespace {

// Returns the tick of a deadline, rounded up so that a timer never fires early.
uint64_t ticks_up(Time time) {
  const int64_t count = time.time_since_epoch().count();
  return count <= 0 ? 0 : (static_cast<uint64_t>(count) + 1023) / 1024;
}

}  // namespace

TimerWheel::TimerWheel(uint32_t timers) : nodes_(timers) {
  static_assert(sizeof(Node) == bytes_each);
}

void TimerWheel::arm(uint32_t timer, Time deadline) {
  disarm(timer);
  if (deadline == never) return;
  constexpr uint64_t latest = (uint64_t{1} << 48) - 1;
  nodes_[timer].expiry = std::max(ticks_up(deadline), now_) & latest;
  place(timer);
}

void TimerWheel::arm_no_later(uint32_t timer, Time deadline) {
  if (deadline == never) return;
  if (armed(timer) && nodes_[timer].expiry <= ticks_up(deadline)) return;
  arm(timer, deadline);
}

void TimerWheel::disarm(uint32_t timer) {
  if (armed(timer)) unlink(timer);
}

void TimerWheel::place(uint32_t timer) {
  const uint64_t expiry = nodes_[timer].expiry;
  if (expiry <= now_) return link(timer, due_list);
  // The wheel is the highest one in whose digit the expiry differs from the current tick; in that
  // wheel the expiry lies ahead. A deadline beyond the last wheel's turn (18 minutes) is placed
  // again when its slot opens.
  const unsigned level = std::min<unsigned>(
      (63 - static_cast<unsigned>(std::countl_zero(expiry ^ now_))) / level_bits, levels - 1);
  const unsigned slot = expiry >> level * level_bits & (slots - 1);
  link(timer, static_cast<uint16_t>(1 + level * slots + slot));
}

void TimerWheel::link(uint32_t timer, uint16_t list) {
  const uint32_t id = timer + 1;
  Node& node = nodes_[timer];
  node.list = list;
  node.previous = none;
  node.next = heads_[list];
  if (node.next != none) nodes_[node.next - 1].previous = id;
  heads_[list] = id;
  if (list == due_list) return;
  const unsigned level = (list - 1u) / slots;
  const unsigned slot = (list - 1u) % slots;
  occupied_[level] |= uint64_t{1} << slot;
  quiet_until_ = std::min(quiet_until_, opening(level, slot));
}

void TimerWheel::unlink(uint32_t timer) {
  Node& node = nodes_[timer];
  const uint16_t list = node.list;
  if (node.previous != none) {
    nodes_[node.previous - 1].next = node.next;
  } else {
    heads_[list] = node.next;
  }
  if (node.next != none) nodes_[node.next - 1].previous = node.previous;
  if (heads_[list] == none && list != due_list) {
    occupied_[(list - 1) / slots] &= ~(uint64_t{1} << (list - 1) % slots);
  }
  node.list = 0;
}

// The next tick at which a slot has to be opened: a timer of the first wheel is due, or one of a
// higher wheel moves down.
uint64_t TimerWheel::next_tick() const {
  uint64_t earliest = UINT64_MAX;
  for (unsigned level = 0; level < levels; ++level) {
    if (occupied_[level] == 0) continue;
    const unsigned here = now_ >> level * level_bits & (slots - 1);
    // The slot after `here` is the nearest, `here` itself a whole turn away.
    const int next = static_cast<int>(here + 1) % static_cast<int>(slots);
    const int ahead = std::countr_zero(std::rotr(occupied_[level], next));
    const auto slot = static_cast<unsigned>(next + ahead) % slots;
    earliest = std::min(earliest, opening(level, slot));
  }
  return earliest;
}

// The tick at which a slot is opened next. The one that is open now is a whole turn away.
uint64_t TimerWheel::opening(unsigned level, unsigned slot) const {
  const unsigned shift = level * level_bits;
  const uint64_t turns = now_ >> shift;
  const uint64_t ahead = (slot - turns) % slots;
  return (turns + (ahead == 0 ? slots : ahead)) << shift;
}

void TimerWheel::turn(uint64_t to) {
  uint64_t next = next_tick();
  for (; next <= to; next = next_tick()) {
    now_ = next;
    // Every wheel whose slot begins at this tick is opened, highest first, so that what moves
    // down is not passed over.
    for (unsigned level = levels; level-- > 0;) {
      const unsigned shift = level * level_bits;
      if (next & ((uint64_t{1} << shift) - 1)) continue;
      const uint16_t list =
          static_cast<uint16_t>(1 + level * slots + (next >> shift & (slots - 1)));
      // The list is emptied first, because timers that lie whole turns ahead return to the same
      // list.
      uint32_t id = std::exchange(heads_[list], none);
      occupied_[level] &= ~(uint64_t{1} << (list - 1) % slots);
      while (id != none) {
        const uint32_t timer = id - 1;
        id = nodes_[timer].next;
        place(timer);
      }
    }
  }
  now_ = std::max(now_, to);
  quiet_until_ = next;
}

size_t TimerWheel::take_due(uint64_t to, std::span<uint32_t> fired) {
  turn(to);
  size_t count = 0;
  while (count < fired.size() && heads_[due_list] != none) {
    const uint32_t timer = heads_[due_list] - 1;
    unlink(timer);
    fired[count++] = timer;
  }
  return count;
}

Time TimerWheel::next_deadline() const {
  if (heads_[due_list] != none) return Time(tick * static_cast<int64_t>(now_));
  if (quiet_until_ == UINT64_MAX) return never;
  return Time(tick * static_cast<int64_t>(quiet_until_));
}

}  // namespace urma
