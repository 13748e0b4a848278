// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <set>

#include "tests/catch.h"
#include "tests/unit/random_headers.h"

namespace urma::test {

using Bits = std::set<size_t>;  // of a header, counted from the most significant one of byte 0

// Returns the bits from `first` to `last`, both included.
inline Bits bits(size_t first, size_t last) {
  Bits out;
  for (size_t bit = first; bit <= last; ++bit) out.insert(out.end(), bit);
  return out;
}
inline Bits operator+(Bits a, const Bits& b) {
  a.insert(b.begin(), b.end());
  return a;
}

// Checks for random values of a header that they are read from the wire as they were written; that
// the bits in `ignored` are written as zeros, except those in `fixed_ones`; and that these bits,
// and no others, may have any value.
template <class Header>
void check_header(const Bits& ignored, const Bits& fixed_ones = {}) {
  Prng prng(Header::size);
  for (int round = 0; round < 300; ++round) {
    const auto header = random_header<Header>(prng);
    std::array<std::byte, Header::size> wire;
    wire.fill(std::byte{0xee});
    header.emit(wire);
    const std::optional<Header> back = Header::parse(wire);
    REQUIRE(back == header);
    for (size_t bit = 0; bit < Header::size * 8; ++bit) {
      INFO("bit " << bit);
      const auto mask = static_cast<std::byte>(0x80 >> bit % 8);
      if (ignored.contains(bit)) {
        REQUIRE(((wire[bit / 8] & mask) != std::byte{0}) == fixed_ones.contains(bit));
      }
      wire[bit / 8] ^= mask;
      const std::optional<Header> flipped = Header::parse(wire);
      wire[bit / 8] ^= mask;
      REQUIRE((flipped == header) == ignored.contains(bit));
    }
  }
}

}  // namespace urma::test
