#pragma once

#include <array>
#include <utility>

#include "base/siphash.h"
#include "urma/core/ids.h"

namespace urma::memseg {

// Makes TokenIDs and TokenValues that nobody predicts who does not have the key. Both are keyed
// permutations of a count (a Feistel network whose round function is SipHash): so no TokenID comes
// twice before all have come, and of one TokenID no TokenValue ever comes again, whoever had it
// before. A value drawn at random would come again now and then.
class TokenMint {
 public:
  explicit TokenMint(SipHash key) : key_(key) {}

  TokenId id(uint32_t count) const { return TokenId(permute<id_bits>(count, id_limit)); }
  // `generation`: how many values this TokenID has had.
  TokenValue value(TokenId id, uint32_t generation) const {
    return TokenValue(permute<32>(generation, number(id)));
  }
  // Which of its values this is: each of the 2^32 is one.
  uint32_t generation(TokenId id, TokenValue value) const {
    return permute_back<32>(number(value), number(id));
  }

 private:
  static constexpr uint32_t rounds = 8;

  // Of words of `bits` bits; another one for each `tweak` of up to 21 bits.
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
