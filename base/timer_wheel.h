// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "base/region.h"
#include "urma/core/time.h"

namespace urma {

// One deadline for each of `timers` owners, which are named by index. Arming, moving and disarming
// take constant time; a timer takes 16 bytes. There are five wheels of 64 slots, and a slot of the
// first is one tick of 1.024 us: a deadline fires up to one tick late, never early. While no timer
// is armed there is nothing to do. Used by one thread at a time.
class TimerWheel {
 public:
  static constexpr Duration tick = Duration(1024);
  static constexpr unsigned bytes_each = 16;

  explicit TimerWheel(uint32_t timers);

  // Replaces the owner's earlier deadline. `never` disarms.
  void arm(uint32_t timer, Time deadline);
  // Arms unless an earlier deadline is armed already. For owners that check, when a timer fires,
  // whether they are really due, and arm it again if not: most deadlines are moved back before they
  // are reached.
  void arm_no_later(uint32_t timer, Time deadline);
  void disarm(uint32_t timer);
  bool armed(uint32_t timer) const { return nodes_[timer].list != 0; }

  // Disarms the owners whose deadline has passed and stores their indices, at most as many as
  // `fired` holds; the others stay due.
  size_t poll(Time now, std::span<uint32_t> fired) {
    const auto to = static_cast<uint64_t>(now.time_since_epoch().count()) / tick.count();
    if (to >= quiet_until_ || heads_[due_list] != none) return take_due(to, fired);
    now_ = std::max(now_, to);
    return 0;
  }

  // Returns a time before which no owner is due. It may be too early (`poll` then finds nothing),
  // but is never too late.
  Time next_deadline() const;

 private:
  static constexpr unsigned level_bits = 6;
  static constexpr unsigned slots = 1 << level_bits;
  static constexpr unsigned levels = 5;
  static constexpr uint16_t due_list = levels * slots + 1;  // lists count from 1: 0 is disarmed
  static constexpr uint32_t none = 0;                       // links hold index + 1, too

  struct Node {
    uint32_t next;
    uint32_t previous;
    uint64_t expiry : 48;  // ticks: 9 years of them
    uint64_t list : 16;
  };

  size_t take_due(uint64_t to, std::span<uint32_t> fired);
  void place(uint32_t timer);
  void link(uint32_t timer, uint16_t list);
  void unlink(uint32_t timer);
  void turn(uint64_t to);
  uint64_t next_tick() const;
  uint64_t opening(unsigned level, unsigned slot) const;

  RegionArray<Node> nodes_;
  std::array<uint32_t, due_list + 1> heads_{};
  std::array<uint64_t, levels> occupied_{};
  uint64_t now_ = 0;  // ticks; everything before it has been moved to the due list
  // No slot has to be opened before this tick. Most polls look at nothing else.
  uint64_t quiet_until_ = UINT64_MAX;
};

}  // namespace urma
