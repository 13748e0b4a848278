#pragma once

#include <bit>
#include <cstdint>

namespace urma {

// Index and generation: how one part of the library names another's object. A handle kept too
// long finds nothing, instead of finding its successor.
struct Handle {
  uint32_t index = UINT32_MAX;
  uint32_t generation = 0;

  explicit operator bool() const { return index != UINT32_MAX; }
  // One comparison of one word.
  friend bool operator==(Handle a, Handle b) {
    return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
  }
};

}  // namespace urma
