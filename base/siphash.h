// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>
#include <span>

namespace urma {

// SipHash-2-4 over 64-bit words: a keyed function whose results an outsider cannot predict. Used
// for cookies and tokens.
class SipHash {
 public:
  SipHash(uint64_t key0, uint64_t key1) : key0_(key0), key1_(key1) {}

  uint64_t operator()(std::span<const uint64_t> words) const {
    uint64_t v[4] = {key0_ ^ 0x736f6d6570736575, key1_ ^ 0x646f72616e646f6d,
                     key0_ ^ 0x6c7967656e657261, key1_ ^ 0x7465646279746573};
    for (const uint64_t word : words) absorb(v, word);
    absorb(v, static_cast<uint64_t>(words.size() * 8) << 56);
    v[2] ^= 0xff;
    for (int i = 0; i < 4; ++i) round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
  }

 private:
  static void absorb(uint64_t* v, uint64_t word) {
    v[3] ^= word;
    round(v);
    round(v);
    v[0] ^= word;
  }
  static void round(uint64_t* v) {
    v[0] += v[1], v[1] = std::rotl(v[1], 13) ^ v[0], v[0] = std::rotl(v[0], 32);
    v[2] += v[3], v[3] = std::rotl(v[3], 16) ^ v[2];
    v[0] += v[3], v[3] = std::rotl(v[3], 21) ^ v[0];
    v[2] += v[1], v[1] = std::rotl(v[1], 17) ^ v[2], v[2] = std::rotl(v[2], 32);
  }

  uint64_t key0_;
  uint64_t key1_;
};

}  // namespace urma
