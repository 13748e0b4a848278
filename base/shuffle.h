// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "base/siphash.h"

namespace urma {

// An order of all numbers below 2^20, each once, that an outsider cannot predict. It is a Feistel
// network over halves of ten bits, so it need not store which numbers were used.
class Shuffle {
 public:
  static constexpr uint32_t numbers = 1 << 20;

  Shuffle(uint64_t key0, uint64_t key1) : hash_(key0, key1) {}

  // Returns the `i`th number of the order.
  uint32_t operator()(uint32_t i) const {
    uint32_t left = i >> half_bits & half_mask;
    uint32_t right = i & half_mask;
    for (uint64_t round = 0; round < rounds; ++round) {
      const std::array<uint64_t, 1> words = {round << 32 | right};
      const uint32_t mixed = left ^ (static_cast<uint32_t>(hash_(words)) & half_mask);
      left = right;
      right = mixed;
    }
    return left << half_bits | right;
  }

 private:
  static constexpr unsigned half_bits = 10;
  static constexpr uint32_t half_mask = (1 << half_bits) - 1;
  static constexpr uint64_t rounds = 6;

  SipHash hash_;
};

}  // namespace urma
