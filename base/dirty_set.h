#pragma once

#include <atomic>
#include <bit>
#include <cstdint>
#include <vector>

#include "base/region.h"

namespace urma {

// Which of many queues have something in them. Any thread marks; the engine alone takes. A pyramid
// of flags, a byte each, eight under each, so that the one queue in a million that was posted to is
// found by reading a few words, and that nobody needs a locked instruction: marking costs one
// fence, taking another.
//
// A mark is the member's flag, a fence, then, unless the flag above is set already, all flags
// above, from below. Taking clears from above, fences, and looks once more at the words that it has
// cleared: what shows there gets its flags above back. A marker that comes too late for this second
// look finds the flag above cleared, and sets it.
//
// The usual member, which was taken alone last, has the engine look at its flag and needs none
// above. When another one becomes usual, the engine says so, fences, and looks at the flag of the
// one before; who marks that one fences and looks at who is usual: one of them sees the other.
//
// A flag that is set again just before the engine clears it is cleared too: that what was published
// with it is seen by the engine's next look, after its fence, is what processors keep that agree on
// the order of stores (all that we run on), not what C++ says.
// Writers: all flags - posters set, the engine clears and sets; `usual_` - the engine.
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

  // A full fence: what the caller published before is seen by whoever takes the member, and what
  // it reads afterwards (is the engine asleep?) is read after the flag can be seen.
  void mark(uint32_t member) {
    levels_[0][member].store(1, std::memory_order_release);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (usual_.load(std::memory_order_relaxed) == member) return;
    if (levels_.size() > 1 && levels_[1][member / fan].load(std::memory_order_relaxed) == 0) {
      set_above(0, member);
      // What the engine looks at before it sleeps is the uppermost flags.
      std::atomic_thread_fence(std::memory_order_seq_cst);
    }
  }

  // Whether something is marked. A mark in the making may be missed, but not by who has fenced and
  // would sleep: whoever makes it fences, too, and then finds the sleeper.
  bool any() const { return usual_flag().load(std::memory_order_acquire) != 0 || any_other(); }

  // Takes every marked member and calls `function(member)` for each, in no order. What was
  // published with a mark is looked at after `take`.
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
  // Eight flags at once.
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
      // What was published before this flag was set is seen from here on.
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

  std::vector<RegionArray<Flag>> levels_;  // members, then what lies above them, to a single word
  RegionArray<Seen> seen_;                 // words, by this `take`
  size_t seen_count_ = 0;
  alignas(64) std::atomic<uint32_t> usual_{0};
};

}  // namespace urma
