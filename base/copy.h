// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace urma {

// memcpy for sizes that are mostly a few bytes: it copies two words that may overlap, which is
// faster than a call or a string instruction.
inline void copy_bytes(std::byte* to, const std::byte* from, size_t bytes) {
  const auto both_ends = [=](auto word) {
    std::memcpy(&word, from, sizeof word);
    // A process that maps the destination must see one store of one word.
    if (bytes == sizeof word) return static_cast<void>(std::memcpy(to, &word, sizeof word));
    auto last = word;
    std::memcpy(&last, from + bytes - sizeof word, sizeof word);
    std::memcpy(to, &word, sizeof word);
    std::memcpy(to + bytes - sizeof word, &last, sizeof word);
  };
  struct Sixteen {
    std::byte bytes[16];
  };
  struct ThirtyTwo {
    std::byte bytes[32];
  };
  if (bytes > 64) {
    std::memcpy(to, from, bytes);
  } else if (bytes >= 32) {
    both_ends(ThirtyTwo{});
  } else if (bytes >= 16) {
    both_ends(Sixteen{});
  } else if (bytes >= 8) {
    both_ends(uint64_t{});
  } else if (bytes >= 4) {
    both_ends(uint32_t{});
  } else if (bytes >= 2) {
    both_ends(uint16_t{});
  } else if (bytes == 1) {
    *to = *from;
  }
}

// Copies one word, unless one of the two places is not aligned: returns false then.
template <class Word>
bool copy_word(std::byte* to, const std::byte* from) {
  const auto both = reinterpret_cast<uintptr_t>(to) | reinterpret_cast<uintptr_t>(from);
  if (both % sizeof(Word) != 0) return false;
  const Word value = __atomic_load_n(reinterpret_cast<const Word*>(from), __ATOMIC_RELAXED);
  __atomic_store_n(reinterpret_cast<Word*>(to), value, __ATOMIC_RELAXED);
  return true;
}

// Copies memory that others may use meanwhile: an aligned word of 4 or 8 bytes is copied whole, so
// that they see the old value or the new one. The two places may overlap.
inline void copy_shared(std::byte* to, const std::byte* from, size_t bytes) {
  if (bytes == sizeof(uint64_t) && copy_word<uint64_t>(to, from)) return;
  if (bytes == sizeof(uint32_t) && copy_word<uint32_t>(to, from)) return;
  if (bytes > 0) std::memmove(to, from, bytes);
}

}  // namespace urma
