// SPDX-License-Identifier: Apache-2.0
#include "base/crc32.h"

#include <array>
#include <atomic>
#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace urma {
namespace {

constexpr uint32_t polynomial = 0x04c11db7;
constexpr uint32_t reflected_polynomial = 0xedb88320;

using Tables = std::array<std::array<uint32_t, 256>, 8>;

// tables[k][b]: the remainder of byte b followed by k zero bytes.
constexpr Tables make_tables() {
  Tables tables{};
  for (uint32_t b = 0; b < 256; ++b) {
    uint32_t crc = b;
    for (int i = 0; i < 8; ++i) crc = crc >> 1 ^ (crc & 1 ? reflected_polynomial : 0);
    tables[0][b] = crc;
  }
  for (size_t k = 1; k < 8; ++k) {
    for (size_t b = 0; b < 256; ++b) {
      const uint32_t before = tables[k - 1][b];
      tables[k][b] = before >> 8 ^ tables[0][before & 0xff];
    }
  }
  return tables;
}
constexpr Tables tables = make_tables();

#if defined(__x86_64__)

// x^n modulo the polynomial, as carry-less multiplication of reflected operands needs it: bits
// reversed and one position up.
constexpr uint64_t folding_constant(unsigned n) {
  uint32_t remainder = 1;
  for (unsigned i = 0; i < n; ++i) {
    remainder = remainder << 1 ^ (remainder & 0x80000000 ? polynomial : 0);
  }
  uint64_t reversed = 0;
  for (unsigned i = 0; i < 32; ++i) reversed |= uint64_t{remainder >> i & 1} << (32 - i);
  return reversed;
}

constexpr uint64_t reverse33(uint64_t value) {
  uint64_t reversed = 0;
  for (unsigned i = 0; i < 33; ++i) reversed |= (value >> i & 1) << (32 - i);
  return reversed;
}

// Returns the quotient of x^64 by the polynomial, for Barrett's reduction.
constexpr uint64_t barrett_quotient() {
  uint64_t quotient = 0;
  uint64_t high = uint64_t{1} << 32;  // the top 33 bits of the running dividend
  for (unsigned i = 0; i < 33; ++i) {
    quotient <<= 1;
    if (high >> 32 & 1) {
      quotient |= 1;
      high ^= uint64_t{1} << 32 | polynomial;
    }
    high <<= 1;
  }
  return quotient;
}

#define URMA_TARGET_CLMUL __attribute__((target("sse4.1,pclmul")))

template <unsigned distance>
URMA_TARGET_CLMUL inline __m128i folding_by() {
  constexpr auto low = static_cast<int64_t>(folding_constant(distance + 32));
  constexpr auto high = static_cast<int64_t>(folding_constant(distance - 32));
  return _mm_set_epi64x(high, low);
}

// Folds 128 bits over a distance whose constants are given, onto `next`.
URMA_TARGET_CLMUL inline __m128i fold(__m128i x, __m128i constants, __m128i next) {
  const __m128i low = _mm_clmulepi64_si128(x, constants, 0x00);
  const __m128i high = _mm_clmulepi64_si128(x, constants, 0x11);
  return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

URMA_TARGET_CLMUL inline __m128i load(const std::byte* at) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
}

// Reduces 128 folded bits to the 32 of the checksum.
URMA_TARGET_CLMUL inline uint32_t reduce(__m128i x) {
  const __m128i by_96 = _mm_set_epi64x(0, static_cast<int64_t>(folding_constant(96)));
  const __m128i by_64 = _mm_set_epi64x(0, static_cast<int64_t>(folding_constant(64)));
  const __m128i low_words = _mm_setr_epi32(~0, 0, ~0, 0);
  x = _mm_xor_si128(_mm_srli_si128(x, 8), _mm_clmulepi64_si128(x, by_96, 0x00));
  x = _mm_xor_si128(_mm_srli_si128(x, 4),
                    _mm_clmulepi64_si128(_mm_and_si128(x, low_words), by_64, 0x00));
  const __m128i barrett =
      _mm_set_epi64x(static_cast<int64_t>(reverse33(barrett_quotient())),
                     static_cast<int64_t>(reverse33(uint64_t{1} << 32 | polynomial)));
  __m128i q = _mm_clmulepi64_si128(_mm_and_si128(x, low_words), barrett, 0x10);
  q = _mm_clmulepi64_si128(_mm_and_si128(q, low_words), barrett, 0x00);
  return static_cast<uint32_t>(_mm_extract_epi32(_mm_xor_si128(x, q), 1));
}

// Masks for shuffles: 16 bytes from the n-th on move a register up by 16 - n bytes, or down by
// n - 16, and put zeros into the free places.
alignas(16) constexpr uint8_t moves[48] = {
    0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
    0,    1,    2,    3,    4,    5,    6,    7,    8,    9,    10,   11,   12,   13,   14,   15,
    0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80};

// Folds what is left, less than 128 bytes, onto `x`, and reduces. Before `at` there are 16 bytes or
// more of the data, which the load of an incomplete end overlaps: with zeros in front, `x` and that
// end make two blocks.
URMA_TARGET_CLMUL inline uint32_t finish(__m128i x, const std::byte* at, size_t bytes) {
  const __m128i by_128 = folding_by<128>();
  for (; bytes >= 16; at += 16, bytes -= 16) x = fold(x, by_128, load(at));
  if (bytes == 0) return reduce(x);
  const auto* moving = reinterpret_cast<const std::byte*>(moves);
  const __m128i up = load(moving + bytes), down = load(moving + 16 + bytes);
  const __m128i end = _mm_and_si128(_mm_cmpgt_epi8(up, _mm_set1_epi8(-1)), load(at + bytes - 16));
  const __m128i last = _mm_or_si128(_mm_shuffle_epi8(x, down), end);
  return reduce(fold(_mm_shuffle_epi8(x, up), by_128, last));
}

URMA_TARGET_CLMUL uint32_t crc32_clmul(uint32_t crc, const void* data, size_t bytes) {
  if (bytes < 16) return crc32_portable(crc, data, bytes);
  const auto* at = static_cast<const std::byte*>(data);
  __m128i x = _mm_xor_si128(load(at), _mm_cvtsi32_si128(static_cast<int>(crc)));
  at += 16, bytes -= 16;
  if (bytes >= 48 + 64) {
    const __m128i by_128 = folding_by<128>();
    const __m128i by_512 = folding_by<512>();
    __m128i y = load(at), z = load(at + 16), w = load(at + 32);
    at += 48, bytes -= 48;
    for (; bytes >= 64; at += 64, bytes -= 64) {
      x = fold(x, by_512, load(at));
      y = fold(y, by_512, load(at + 16));
      z = fold(z, by_512, load(at + 32));
      w = fold(w, by_512, load(at + 48));
    }
    x = fold(fold(fold(x, by_128, y), by_128, z), by_128, w);
  }
  return finish(x, at, bytes);
}

// gcc 12 warns of deliberately undefined operands in its own AVX-512 header.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

// Two blocks of 128 bits in a register, for processors without AVX-512.
#define URMA_TARGET_AVX2 __attribute__((target("avx2,vpclmulqdq,sse4.1,pclmul")))

URMA_TARGET_AVX2 inline __m256i fold(__m256i x, __m256i constants, __m256i next) {
  const __m256i low = _mm256_clmulepi64_epi128(x, constants, 0x00);
  const __m256i high = _mm256_clmulepi64_epi128(x, constants, 0x11);
  return _mm256_xor_si256(_mm256_xor_si256(low, high), next);
}

URMA_TARGET_AVX2 inline __m256i load_two(const std::byte* at) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
}

constexpr size_t least_for_two = 1024;  // less is as fast in 128 bits

URMA_TARGET_AVX2 uint32_t crc32_avx2(uint32_t crc, const void* data, size_t bytes) {
  if (bytes < least_for_two) return crc32_clmul(crc, data, bytes);
  const auto* at = static_cast<const std::byte*>(data);
  const __m256i by_1024 = _mm256_broadcastsi128_si256(folding_by<1024>());
  const __m256i by_256 = _mm256_broadcastsi128_si256(folding_by<256>());
  __m256i lanes[4];
  for (int i = 0; i < 4; ++i) lanes[i] = load_two(at + 32 * i);
  lanes[0] =
      _mm256_xor_si256(lanes[0], _mm256_zextsi128_si256(_mm_cvtsi32_si128(static_cast<int>(crc))));
  at += 128, bytes -= 128;
  for (; bytes >= 128; at += 128, bytes -= 128) {
    for (int i = 0; i < 4; ++i) lanes[i] = fold(lanes[i], by_1024, load_two(at + 32 * i));
  }
  __m256i x = lanes[0];
  for (int i = 1; i < 4; ++i) x = fold(x, by_256, lanes[i]);
  const __m128i by_128 = folding_by<128>();
  return finish(fold(_mm256_castsi256_si128(x), by_128, _mm256_extracti128_si256(x, 1)), at, bytes);
}

#define URMA_TARGET_WIDE __attribute__((target("avx512f,avx512vl,vpclmulqdq,sse4.1,pclmul")))

URMA_TARGET_WIDE inline __m512i fold(__m512i x, __m512i constants, __m512i next) {
  const __m512i low = _mm512_clmulepi64_epi128(x, constants, 0x00);
  const __m512i high = _mm512_clmulepi64_epi128(x, constants, 0x11);
  return _mm512_ternarylogic_epi64(low, high, next, 0x96);
}

URMA_TARGET_WIDE uint32_t crc32_wide(uint32_t crc, const void* data, size_t bytes) {
  if (bytes < 512) return crc32_clmul(crc, data, bytes);
  const auto* at = static_cast<const std::byte*>(data);
  const __m512i by_2048 = _mm512_broadcast_i32x4(folding_by<2048>());
  const __m512i by_512 = _mm512_broadcast_i32x4(folding_by<512>());
  __m512i lanes[4];
  for (int i = 0; i < 4; ++i) lanes[i] = _mm512_loadu_si512(at + 64 * i);
  lanes[0] =
      _mm512_xor_si512(lanes[0], _mm512_zextsi128_si512(_mm_cvtsi32_si128(static_cast<int>(crc))));
  at += 256, bytes -= 256;
  for (; bytes >= 256; at += 256, bytes -= 256) {
    for (int i = 0; i < 4; ++i) {
      lanes[i] = fold(lanes[i], by_2048, _mm512_loadu_si512(at + 64 * i));
    }
  }
  __m512i x = lanes[0];
  for (int i = 1; i < 4; ++i) x = fold(x, by_512, lanes[i]);
  for (; bytes >= 64; at += 64, bytes -= 64) x = fold(x, by_512, _mm512_loadu_si512(at));

  const __m128i by_128 = folding_by<128>();
  __m128i y = _mm512_extracti32x4_epi32(x, 0);
  y = fold(y, by_128, _mm512_extracti32x4_epi32(x, 1));
  y = fold(y, by_128, _mm512_extracti32x4_epi32(x, 2));
  y = fold(y, by_128, _mm512_extracti32x4_epi32(x, 3));
  return finish(y, at, bytes);
}

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

#endif

struct Implementations {
  Crc32Implementation list[4] = {{"portable", crc32_portable}};
  size_t count = 1;

  Implementations() {
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("pclmul") || !__builtin_cpu_supports("sse4.1")) return;
    list[count++] = {"clmul", crc32_clmul};
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("vpclmulqdq")) return;
    list[count++] = {"clmul256", crc32_avx2};
    if (!__builtin_cpu_supports("avx512vl")) return;
    list[count++] = {"clmul512", crc32_wide};
#endif
  }
};

const Implementations& implementations() {
  static const Implementations found;
  return found;
}

// The best implementation, chosen at the first call.
using Update = decltype(Crc32Implementation::update);
uint32_t choose(uint32_t crc, const void* data, size_t bytes);
constinit std::atomic<Update> chosen = choose;

uint32_t choose(uint32_t crc, const void* data, size_t bytes) {
  const Update best = implementations().list[implementations().count - 1].update;
  chosen.store(best, std::memory_order_relaxed);
  return best(crc, data, bytes);
}

}  // namespace

uint32_t crc32_portable(uint32_t crc, const void* data, size_t bytes) {
  const auto* at = static_cast<const unsigned char*>(data);
  for (; bytes >= 8; at += 8, bytes -= 8) {
    uint64_t word;
    std::memcpy(&word, at, 8);
    if constexpr (std::endian::native == std::endian::big) word = __builtin_bswap64(word);
    word ^= crc;
    crc = 0;
    for (size_t k = 0; k < 8; ++k) crc ^= tables[7 - k][word >> 8 * k & 0xff];
  }
  if (bytes >= 4) {
    uint32_t word;
    std::memcpy(&word, at, 4);
    if constexpr (std::endian::native == std::endian::big) word = __builtin_bswap32(word);
    word ^= crc;
    crc = 0;
    for (size_t k = 0; k < 4; ++k) crc ^= tables[3 - k][word >> 8 * k & 0xff];
    at += 4, bytes -= 4;
  }
  for (; bytes > 0; ++at, --bytes) crc = crc >> 8 ^ tables[0][(crc ^ *at) & 0xff];
  return crc;
}

uint32_t crc32_update(uint32_t crc, const void* data, size_t bytes) {
  return bytes == 0 ? crc : chosen.load(std::memory_order_relaxed)(crc, data, bytes);
}

std::span<const Crc32Implementation> crc32_implementations() {
  return {implementations().list, implementations().count};
}

}  // namespace urma
