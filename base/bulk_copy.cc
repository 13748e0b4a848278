// SPDX-License-Identifier: Apache-2.0
#include "base/bulk_copy.h"

#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace urma {

#if defined(__x86_64__)

void copy_past_caches(std::byte* to, const std::byte* from, size_t bytes) {
  constexpr size_t line = 64;
  constexpr size_t word = sizeof(__m128i);
  const size_t before = (line - reinterpret_cast<uintptr_t>(to) % line) % line;
  if (bytes < before + line) {
    std::memcpy(to, from, bytes);
    return;
  }
  std::memcpy(to, from, before);
  size_t at = before;
  for (; at + line <= bytes; at += line) {
    const auto* const source = reinterpret_cast<const __m128i*>(from + at);
    auto* const target = reinterpret_cast<__m128i*>(to + at);
    const __m128i words[line / word] = {_mm_loadu_si128(source), _mm_loadu_si128(source + 1),
                                        _mm_loadu_si128(source + 2), _mm_loadu_si128(source + 3)};
    for (size_t i = 0; i < line / word; ++i) _mm_stream_si128(target + i, words[i]);
  }
  std::memcpy(to + at, from + at, bytes - at);
  // Non-temporal stores are not ordered with later ones. The fence makes them so.
  _mm_sfence();
}

#else

void copy_past_caches(std::byte* to, const std::byte* from, size_t bytes) {
  std::memcpy(to, from, bytes);
}

#endif

}  // namespace urma
