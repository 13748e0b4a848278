// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "apps/urma_perf/pattern.h"
#include "urma/urma.hpp"

namespace urma::apps::perf {

// The words of the server that a client's atomics change. Only one client changes each word, with
// one outstanding work, so the client knows in advance what each work fetches and what it stores.
class Words {
 public:
  Words(Atomic atomic, uint64_t bytes, size_t count);

  // Sets the value that a word has before the next work.
  void set(size_t word, uint64_t value) { words_[word] = {0, value}; }
  // The operands of an atomic: a compare-swap that succeeds if the word is what it should be and
  // changes all of its bytes, or a fetch-add of 1.
  struct Operands {
    uint64_t expected = 0;
    uint64_t operand = 0;
  };
  // Returns the operands of the next atomic on this word.
  Operands advance(size_t word);
  // Gives the work these operands.
  void aim(Work& work, size_t word);
  // The value of a word after the latest work.
  uint64_t value(size_t word) const { return words_[word].after; }
  // Counts a wrong message if the latest work did not fetch the expected value. Continues from the
  // fetched value, so that one wrong word is counted once.
  void check(size_t word, uint64_t fetched, Verdict& verdict);

  // Returns the word at this position.
  static uint64_t load(std::span<const std::byte> word);

 private:
  struct Word {
    uint64_t before = 0;  // of the latest work
    uint64_t after = 0;
  };
  uint64_t next(uint64_t value) const;

  Atomic atomic_;
  uint64_t bytes_;
  std::vector<Word> words_;
};

}  // namespace urma::apps::perf
