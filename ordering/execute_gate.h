// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "urma/core/ids.h"

namespace urma::ordering {

// A sequence context (UB 5.5): decides at the target when a strong slice of one initiator queue may
// be executed. The slice waits until every slice before it has passed. A slice without order passes
// when its first packet arrives, because only then is it known to have no order; a relaxed or
// strong one when it has been executed, refused or withdrawn. It knows slices only by their TASSN.
// Only the thread that runs the engine calls it.
class ExecuteGate {
 public:
  static constexpr uint32_t window = 1024;  // slices that may be open (docs/protocol.md, W)

  // Makes a gate that all slices before `first` have passed.
  explicit ExecuteGate(Tassn first) : first_(first) {}

  // Reports that no slice before `first` will arrive any longer.
  void begin_at(Tassn first) {
    if (first > first_) slide(first);
    skip();
  }
  // Reports that a slice has passed. A number before the window is ignored; a number beyond it
  // moves the window on.
  void pass(Tassn number) {
    if (number < first_) return;
    if (number - first_ >= int64_t{window}) slide(number - (window - 1));
    word(number) |= bit(number);
    skip();
  }
  bool open(Tassn number) const { return number <= first_; }
  // Returns the first slice that has not passed.
  Tassn first() const { return first_; }

 private:
  static constexpr uint32_t per_word = 64;

  uint64_t& word(Tassn number) { return passed_[number.value % window / per_word]; }
  static uint64_t bit(Tassn number) { return uint64_t{1} << number.value % per_word; }

  void slide(Tassn first) {
    if (first - first_ >= int64_t{window}) {
      passed_.fill(0);
    } else {
      for (; first_ < first; ++first_) word(first_) &= ~bit(first_);
    }
    first_ = first;
  }
  void skip() {
    for (; (word(first_) & bit(first_)) != 0; ++first_) word(first_) &= ~bit(first_);
  }

  std::array<uint64_t, window / per_word> passed_{};
  Tassn first_;
};

}  // namespace urma::ordering
