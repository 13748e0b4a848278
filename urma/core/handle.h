// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>

namespace urma {

// Identifies an object in a table by an index and a generation. After the object is destroyed, its
// handle finds nothing, even if another object uses the index by then.
struct Handle {
  uint32_t index = UINT32_MAX;  // in the table; UINT32_MAX: no object
  uint32_t generation = 0;      // how often the index was given away before

  // Returns whether the handle identifies an object; a default handle does not.
  explicit operator bool() const { return index != UINT32_MAX; }
  // Compares both members as one 64-bit word.
  friend bool operator==(Handle a, Handle b) {
    return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
  }
};

}  // namespace urma
