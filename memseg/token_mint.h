// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <utility>

#include "base/siphash.h"
#include "urma/core/ids.h"

namespace urma::memseg {

// Makes TokenIDs and TokenValues that cannot be predicted without the key. Both are keyed
// permutations of a counter (a Feistel network whose round function is SipHash). So no TokenID
// comes twice before all have come, and no TokenValue of a TokenID ever comes again, even for
// another segment. Random values would repeat now and then.
class TokenMint {
 public:
  explicit TokenMint(SipHash key) : key_(key) {}

  TokenId id(uint32_t count) const { return TokenId(permute<id_bits>(count, id_limit)); }
  // `generation` is the number of values that this TokenID has had before.
  TokenValue value(TokenId id, uint32_t generation) const {
    return TokenValue(permute<32>(generation, number(id)));
  }
  // The inverse of `value`: each of the 2^32 values belongs to one generation.
  uint32_t generation(TokenId id, TokenValue value) const {
    return permute_back<32>(number(value), number(id));
  }

 private:
  static constexpr uint32_t rounds = 8;

  // A permutation of the numbers of `bits` bits; a different one for each `tweak` of up to 21 bits.
  template <unsigned bits>
  uint32_t permute(uint32_t word, uint32_t tweak) const {
    constexpr unsigned half = bits / 2;
    constexpr uint32_t mask = (1u << half) - 1;
    uint32_t left = word >> half;
    uint32_t right = word & mask;
    for (uint32_t round = 0; round < rounds; ++round) {
      left ^= drawn(tweak, round, right) & mask;
      std::swap(left, right);
    }
    return left << half | right;
  }
  template <unsigned bits>
  uint32_t permute_back(uint32_t word, uint32_t tweak) const {
    constexpr unsigned half = bits / 2;
    constexpr uint32_t mask = (1u << half) - 1;
    uint32_t left = word >> half;
    uint32_t right = word & mask;
    for (uint32_t round = rounds; round-- > 0;) {
      std::swap(left, right);
      left ^= drawn(tweak, round, right) & mask;
    }
    return left << half | right;
  }
  uint32_t drawn(uint32_t tweak, uint32_t round, uint32_t half) const {
    const std::array<uint64_t, 1> about{uint64_t{tweak} << 32 | round << 16 | half};
    return static_cast<uint32_t>(key_(about));
  }

  SipHash key_;
};

}  // namespace urma::memseg
