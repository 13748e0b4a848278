// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/flat_map.h"

namespace urma::test {

inline uint64_t pattern_word(uint64_t work, uint64_t word) {
  return mix_bits(work * 0x9e3779b97f4a7c15 + word);
}

// Returns a byte of a work: a function of the work's number and the position, so that a byte that
// is misplaced, late or of another work is detected.
inline std::byte pattern(uint64_t work, uint64_t at) {
  return static_cast<std::byte>(pattern_word(work, at / 8) >> at % 8 * 8);
}

inline void fill_pattern(std::span<std::byte> out, uint64_t work) {
  for (size_t i = 0; i < out.size(); i += 8) {
    const uint64_t word = pattern_word(work, i / 8);
    std::memcpy(out.data() + i, &word, std::min<size_t>(8, out.size() - i));
  }
}

inline bool has_pattern(std::span<const std::byte> bytes, uint64_t work) {
  for (size_t i = 0; i < bytes.size(); i += 8) {
    const uint64_t word = pattern_word(work, i / 8);
    if (std::memcmp(bytes.data() + i, &word, std::min<size_t>(8, bytes.size() - i)) != 0)
      return false;
  }
  return true;
}

}  // namespace urma::test
