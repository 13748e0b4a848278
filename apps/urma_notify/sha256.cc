// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_notify/sha256.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>
#include <utility>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace urma::apps::notify {
namespace {

constexpr size_t block = 64;

// The first 32 bits of the fractions of the cube roots of the first 64 primes.
alignas(16) constexpr std::array<uint32_t, 64> constants = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

uint32_t big_endian(const std::byte* at) {
  return static_cast<uint32_t>(at[0]) << 24 | static_cast<uint32_t>(at[1]) << 16 |
         static_cast<uint32_t>(at[2]) << 8 | static_cast<uint32_t>(at[3]);
}

#if defined(__x86_64__)

// The instructions keep the eight words as two vectors: A, B, E, F and C, D, G, H.
__attribute__((target("sha,ssse3,sse4.1"))) void with_instructions(Sha256::State& state,
                                                                   const std::byte* bytes,
                                                                   size_t blocks) {
  const auto vector = [](const void* at) __attribute__((target("sha,ssse3,sse4.1"))) {
    return _mm_loadu_si128(static_cast<const __m128i*>(at));
  };
  const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  const auto [a, b, c, d, e, f, g, h] = state;
  const auto word = [](uint32_t value) { return static_cast<int>(value); };
  __m128i abef = _mm_set_epi32(word(a), word(b), word(e), word(f));
  __m128i cdgh = _mm_set_epi32(word(c), word(d), word(g), word(h));
  for (; blocks > 0; --blocks, bytes += block) {
    const __m128i abef_before = abef, cdgh_before = cdgh;
    __m128i words[16];
    for (size_t i = 0; i < std::size(words); ++i) {
      if (i < 4) {
        words[i] = _mm_shuffle_epi8(vector(bytes + 16 * i), swap);
      } else {
        const __m128i some = _mm_add_epi32(_mm_sha256msg1_epu32(words[i - 4], words[i - 3]),
                                           _mm_alignr_epi8(words[i - 1], words[i - 2], 4));
        words[i] = _mm_sha256msg2_epu32(some, words[i - 1]);
      }
      const __m128i sum = _mm_add_epi32(words[i], vector(&constants[4 * i]));
      cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
      abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0e));
    }
    abef = _mm_add_epi32(abef, abef_before);
    cdgh = _mm_add_epi32(cdgh, cdgh_before);
  }
  std::array<uint32_t, 4> feba{}, hgdc{};
  std::memcpy(feba.data(), &abef, sizeof abef);
  std::memcpy(hgdc.data(), &cdgh, sizeof cdgh);
  state = {feba[3], feba[2], hgdc[3], hgdc[2], feba[1], feba[0], hgdc[1], hgdc[0]};
}

bool has_instructions() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned sha = 1U << 29;
  return __builtin_cpu_supports("ssse3") && __builtin_cpu_supports("sse4.1") &&
         __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & sha) != 0;
}

#endif

}  // namespace

void Sha256::portable(State& state, const std::byte* bytes, size_t blocks) {
  for (; blocks > 0; --blocks, bytes += block) {
    std::array<uint32_t, 64> words{};
    for (size_t i = 0; i < 16; ++i) words[i] = big_endian(bytes + 4 * i);
    for (size_t i = 16; i < 64; ++i) {
      const uint32_t x = words[i - 15], y = words[i - 2];
      words[i] = words[i - 16] + (std::rotr(x, 7) ^ std::rotr(x, 18) ^ x >> 3) + words[i - 7] +
                 (std::rotr(y, 17) ^ std::rotr(y, 19) ^ y >> 10);
    }
    auto [a, b, c, d, e, f, g, h] = state;
    for (size_t i = 0; i < 64; ++i) {
      const uint32_t first = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) +
                             ((e & f) ^ (~e & g)) + constants[i] + words[i];
      const uint32_t second =
          (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
      h = std::exchange(g, std::exchange(f, std::exchange(e, d + first)));
      d = std::exchange(c, std::exchange(b, std::exchange(a, first + second)));
    }
    const State sum = {a, b, c, d, e, f, g, h};
    for (size_t i = 0; i < sum.size(); ++i) state[i] += sum[i];
  }
}

Sha256::Blocks Sha256::accelerated() {
#if defined(__x86_64__)
  static const bool has = has_instructions();
  if (has) return with_instructions;
#endif
  return nullptr;
}

Sha256::Sha256() : Sha256(accelerated() != nullptr ? accelerated() : portable) {}

void Sha256::add(std::span<const std::byte> bytes) {
  const size_t filled = bytes_ % block;
  bytes_ += bytes.size();
  if (filled > 0) {
    const auto some = bytes.first(std::min(block - filled, bytes.size()));
    std::ranges::copy(some, rest_.begin() + static_cast<ptrdiff_t>(filled));
    bytes = bytes.subspan(some.size());
    if (filled + some.size() < block) return;
    blocks_(state_, rest_.data(), 1);
  }
  blocks_(state_, bytes.data(), bytes.size() / block);
  std::ranges::copy(bytes.subspan(bytes.size() / block * block), rest_.begin());
}

// Behind the bytes come a 1, zeros, and the number of bits in the last 8 bytes of a block.
std::string Sha256::hex() {
  const uint64_t bits = bytes_ * 8;
  std::array<std::byte, 2 * block> end{std::byte{0x80}};
  const size_t zeros = (2 * block - 8 - bytes_ % block - 1) % block;
  for (size_t i = 0; i < 8; ++i) end[1 + zeros + i] = std::byte(bits >> (56 - 8 * i) & 0xff);
  add(std::span(end).first(1 + zeros + 8));
  std::string text;
  for (const uint32_t word : state_) text += fmt::format("{:08x}", word);
  return text;
}

}  // namespace urma::apps::notify
