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
  if (bytes > 32) {
    std::memcpy(to, from, bytes);
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

}  // namespace urma
