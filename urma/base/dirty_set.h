#pragma once

#include <atomic>
#include <bit>
#include <cstdint>

#include "urma/base/region.h"

namespace urma {

// Which of many queues have something in them. Any thread marks; the engine alone takes. Two
// levels, so that finding the one queue in a million that was posted to reads a few words.
// Writers: bits - a poster sets, the engine clears.
class DirtySet {
 public:
  explicit DirtySet(uint32_t members)
      : words_((members + 63) / 64), summary_((words_.size() + 63) / 64) {}

  // A full fence: what the caller published before is seen by whoever takes the member, and what
  // it reads afterwards (is the engine asleep?) is read after the mark can be seen.
  void mark(uint32_t member) {
    const uint64_t bit = uint64_t{1} << member % 64;
    const uint64_t word_bit = uint64_t{1} << member / 64 % 64;
    words_[member / 64].fetch_or(bit, std::memory_order_seq_cst);
    // Not left to whoever made the word non-zero: that thread may not have come to this line.
    Word& summary = summary_[member / 4096];
    if ((summary.load(std::memory_order_seq_cst) & word_bit) == 0) {
      summary.fetch_or(word_bit, std::memory_order_seq_cst);
    }
  }

  bool any() const {
    for (size_t i = 0; i < summary_.size(); ++i) {
      if (summary_[i].load(std::memory_order_seq_cst) != 0) return true;
    }
    return false;
  }

  // Takes every marked member and calls `function(member)` for each.
  template <class Function>
  void take(Function&& function) {
    for (size_t s = 0; s < summary_.size(); ++s) {
      if (summary_[s].load(std::memory_order_relaxed) == 0) continue;
      uint64_t dirty_words = summary_[s].exchange(0, std::memory_order_seq_cst);
      for (; dirty_words != 0; dirty_words &= dirty_words - 1) {
        const size_t word = s * 64 + static_cast<size_t>(std::countr_zero(dirty_words));
        uint64_t bits = words_[word].exchange(0, std::memory_order_seq_cst);
        for (; bits != 0; bits &= bits - 1) {
          function(static_cast<uint32_t>(word * 64 + static_cast<size_t>(std::countr_zero(bits))));
        }
      }
    }
  }

 private:
  using Word = std::atomic<uint64_t>;
  static_assert(sizeof(Word) == 8 && Word::is_always_lock_free);

  RegionArray<Word> words_;
  RegionArray<Word> summary_;
};

}  // namespace urma
