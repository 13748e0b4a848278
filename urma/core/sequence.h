// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>

namespace urma {

// A sequence number that wraps after `Bits` bits on the wire, and has 64 bits in memory. `unwrap`
// is called once, where a packet is parsed; after that, numbers compare with <. `Space` makes a
// type for each number space, so that a PSN cannot be compared with a TPMSN.
template <class Space, unsigned Bits>
struct Sequence {
  // The number of values that the wire tells apart.
  static constexpr uint64_t modulus = uint64_t{1} << Bits;

  uint64_t value = 0;  // never wraps

  // Returns the bits that are sent on the wire.
  constexpr uint32_t wire() const { return static_cast<uint32_t>(value % modulus); }

  // Returns the number with these wire bits that is nearest to `reference`; if two numbers are at
  // the same distance, the larger one. Numbers start at `modulus` or above, so that numbers before
  // the first exist too.
  static constexpr Sequence unwrap(Sequence reference, uint32_t wire_bits) {
    const uint64_t ahead = (wire_bits - reference.value) % modulus;
    const uint64_t value = reference.value + ahead;
    return {ahead <= modulus / 2 || value < modulus ? value : value - modulus};
  }

  // Returns the first number of a space, given its wire bits.
  static constexpr Sequence first(uint32_t wire_bits) { return {modulus + wire_bits % modulus}; }

  friend constexpr auto operator<=>(Sequence, Sequence) = default;
  // These return the number that is `n` later or earlier, and the distance of two numbers.
  friend constexpr Sequence operator+(Sequence a, uint64_t n) { return {a.value + n}; }
  friend constexpr Sequence operator-(Sequence a, uint64_t n) { return {a.value - n}; }
  friend constexpr int64_t operator-(Sequence a, Sequence b) {
    return static_cast<int64_t>(a.value - b.value);
  }
  // Advances to the next number.
  constexpr Sequence& operator++() {
    ++value;
    return *this;
  }
};

}  // namespace urma
