// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>
#include <vector>

#include "base/region.h"

namespace urma {

// The set of the queues that are not empty, out of many queues. Any thread marks a queue; only the
// engine takes marked ones. It is a pyramid of flags, one byte each, with eight flags below each
// flag, so that the engine finds the one marked queue among a million by reading a few words. No
// thread needs a locked instruction: marking takes one fence, taking another.
//
// To mark: set the member's flag, fence, then, unless the flag above is set already, set all flags
// above, from the bottom up. To take: clear flags from the top down, fence, and look once more at
// the words that were cleared; if one of them is not zero, set the flags above it again. A marker
// that is too late for this second look finds the flag above cleared, and sets it.
//
// The usual member is the one that was last taken alone. The engine looks at its flag directly, so
// it needs no flags above. When another member becomes the usual one, the engine stores that,
// fences, and looks at the flag of the previous one; a thread that marks the previous one fences
// and then reads which one is usual. One of the two sees the other.
//
// A flag that is set again just before the engine clears it is cleared, too. The engine then still
// sees, after its fence, what was published with that flag. Processors that keep the stores of one
// thread in order guarantee this (all that this library runs on do), C++ does not. Posting threads
// set flags, the engine clears and sets them; only the engine writes `usual_`.
class DirtySet {
 public:
  explicit DirtySet(uint32_t members) {
    size_t words = (members + fan - 1) / fan;
    size_t all_words = words;
    levels_.emplace_back(words * fan);
    while (words > 1) {
      words = (words + fan - 1) / fan;
      all_words += words;
      levels_.emplace_back(words * fan);
    }
    seen_ = RegionArray<Seen>(all_words);
  }

  // Contains a full fence. A thread that takes the member sees what the caller published before;
  // and what the caller reads afterwards (such as whether the engine is asleep) is read after the
  // flag is visible.
  void mark(uint32_t member) {
    levels_[0][member].store(1, std::memory_order_release);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (usual_.load(std::memory_order_relaxed) == member) return;
    if (levels_.size() > 1 && levels_[1][member / fan].load(std::memory_order_relaxed) == 0) {
      set_above(0, member);
      // Before it sleeps, the engine looks only at the uppermost flags.
      std::atomic_thread_fence(std::memory_order_seq_cst);
    }
  }

  // Returns whether a member is marked. It may miss a mark in progress; an engine that fences
  // before it sleeps is nevertheless woken, because the marking thread fences, too, and then sees
  // that it sleeps.
  bool any() const { return usual_flag().load(std::memory_order_acquire) != 0 || any_other(); }

  // Takes every marked member and calls `function(member)` for each, in no particular order. To be
  // called before the engine looks at what was published with the marks.
  template <class Function>
  void take(Function&& function) {
    if (!any()) return;
    const uint32_t usual = usual_.load(std::memory_order_relaxed);
    const bool as_usual = usual_flag().load(std::memory_order_acquire) != 0;
    if (as_usual) {
      usual_flag().store(0, std::memory_order_relaxed);
      function(usual);
    }
    seen_count_ = 0;
    uint32_t taken = 0;
    uint32_t last = usual;
    const auto note = [&](uint32_t member) {
      ++taken;
      last = member;
      function(member);
    };
    if (any_other()) take_word(levels_.size() - 1, 0, note);
    const bool other_usual = !as_usual && taken == 1 && last != usual;
    if (other_usual) usual_.store(last, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (other_usual && levels_[0][usual].load(std::memory_order_relaxed) != 0) {
      set_above(0, usual);
    }
    for (size_t i = 0; i < seen_count_; ++i) {
      if (word(seen_[i].level, seen_[i].word) != 0) set_above(seen_[i].level, seen_[i].word * fan);
    }
  }

 private:
  using Flag = std::atomic<uint8_t>;
  using Word = std::atomic<uint64_t>;
  static_assert(sizeof(Flag) == 1 && sizeof(Word) == 8 && Word::is_always_lock_free);
  static constexpr size_t fan = 8;

  Flag& usual_flag() { return levels_[0][usual_.load(std::memory_order_relaxed)]; }
  const Flag& usual_flag() const { return levels_[0][usual_.load(std::memory_order_relaxed)]; }
  bool any_other() const { return word(levels_.size() - 1, 0) != 0; }
  // Returns eight flags as one word.
  uint64_t word(size_t level, size_t index) const {
    const Flag& first = levels_[level][index * fan];
    return reinterpret_cast<const Word&>(first).load(std::memory_order_acquire);
  }
  void set_above(size_t level, size_t flag) {
    for (size_t above = level + 1; above < levels_.size(); ++above) {
      flag /= fan;
      levels_[above][flag].store(1, std::memory_order_release);
    }
  }

  template <class Function>
  void take_word(size_t level, size_t index, Function& function) {
    seen_[seen_count_++] = {static_cast<uint32_t>(level), static_cast<uint32_t>(index)};
    for (uint64_t flags = word(level, index); flags != 0;) {
      const auto place = static_cast<size_t>(std::countr_zero(flags)) / fan;
      flags &= ~(uint64_t{0xff} << place * fan);
      const size_t flag = index * fan + place;
      // After this load, what was published before this flag was set is visible.
      if (levels_[level][flag].load(std::memory_order_acquire) == 0) continue;
      levels_[level][flag].store(0, std::memory_order_relaxed);
      if (level > 0) {
        take_word(level - 1, flag, function);
      } else {
        function(static_cast<uint32_t>(flag));
      }
    }
  }

  struct Seen {
    uint32_t level;
    uint32_t word;
  };

  // the members' flags, then each level above, up to a single word
  std::vector<RegionArray<Flag>> levels_;
  RegionArray<Seen> seen_;  // the words that this `take` has visited
  size_t seen_count_ = 0;
  alignas(64) std::atomic<uint32_t> usual_{0};
};

}  // namespace urma
