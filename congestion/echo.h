// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "congestion/controller.h"

namespace urma::congestion {

// The receiver's half: sums up the signals that arrived since the last acknowledgement. It lies in
// the channel, which calls `add` for each new packet and `take` for each acknowledgement. Sums that
// reach what CETPH can hold (8 bits of marks, 16 of hints) stay there instead of wrapping to zero;
// `full` asks for an acknowledgement before that.
class Echo {
 public:
  // Returns whether the acknowledgement should not be delayed.
  bool add(const Signal& signal, uint32_t bytes, Needs needs) {
    const Echo before = *this;
    switched_ = switched_ || signal.switched;
    queue_ = std::max(queue_, signal.switch_queue);
    if (signal.congested) {
      // A mark without a hint, such as one of ECN, names no rate.
      if (signal.hint > 0) least_ = least_ == 0 ? signal.hint : std::min(least_, signal.hint);
      marks_ = static_cast<uint8_t>(std::min(marks_ + 1, 0xff));
      last_hop_ = last_hop_ || signal.last_hop;
    } else if (signal.increase) {
      const uint32_t units = needs == Needs::rates ? units_of(bytes) : signal.hint;
      sum_ = static_cast<uint16_t>(std::min(sum_ + units, 0xffffu));
      increase_ = true;
    }
    return (marks_ > 0) != (before.marks_ > 0) || increase_ != before.increase_;
  }

  // The packet that was added last had a mark of ECN.
  void add_ecn_mark() {
    if (ecn_marks_ < most_ecn_marks) ++ecn_marks_;
  }
  unsigned ecn_marks() const { return ecn_marks_; }

  // The hint of an explicit rate has 15 bits.
  bool full() const { return marks_ >= 192 || sum_ >= 0x6000 || ecn_marks_ >= most_ecn_marks - 7; }

  // Returns what the next acknowledgement says, and begins anew.
  Feedback take(Needs needs) {
    const Echo sum = *this;
    *this = {};
    const uint16_t least = sum.least_;
    return {.marked_packets = sum.marks_,
            .increase = sum.increase_,
            .last_hop = sum.last_hop_,
            .switched = sum.switched_,
            .hint = needs == Needs::rates && sum.marks_ > 0 ? least : sum.sum_,
            .switch_queue = sum.queue_};
  }

 private:
  static constexpr uint8_t most_ecn_marks = 31;

  // Rounded up, because a packet may be smaller than a unit. A sender adds no more than the bytes
  // that are acknowledged.
  static uint32_t units_of(uint32_t bytes) { return (bytes + hint_unit - 1) / hint_unit; }

  uint16_t sum_ = 0;  // hint units
  uint8_t marks_ = 0;
  uint8_t least_ = 0;  // rate code
  uint8_t queue_ = 0;
  bool increase_ : 1 = false;
  bool last_hop_ : 1 = false;
  bool switched_ : 1 = false;
  uint8_t ecn_marks_ : 5 = 0;
};
static_assert(sizeof(Echo) <= 6);

}  // namespace urma::congestion
