// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace urma {

namespace detail {
template <size_t Bytes>
using Word =
    std::conditional_t<Bytes == 8, uint64_t, std::conditional_t<Bytes == 4, uint32_t, uint16_t>>;
template <size_t Bytes>
inline constexpr bool is_word = Bytes == 2 || Bytes == 4 || Bytes == 8;

template <class W>
W big_endian(W word) {
  if constexpr (std::endian::native == std::endian::big) return word;
  if constexpr (sizeof(W) == 8) return __builtin_bswap64(word);
  if constexpr (sizeof(W) == 4) return __builtin_bswap32(word);
  return __builtin_bswap16(static_cast<uint16_t>(word));
}
}  // namespace detail

// Big-endian integers of 1 to 8 bytes, unaligned. Sizes of a machine word are handled apart,
// because compilers do not reliably turn the byte loop into one load and one byte swap.
template <size_t Bytes>
constexpr uint64_t load_be(const std::byte* from) {
  static_assert(Bytes >= 1 && Bytes <= 8);
  if (detail::is_word<Bytes> && !std::is_constant_evaluated()) {
    detail::Word<Bytes> word;
    std::memcpy(&word, from, sizeof word);
    return detail::big_endian(word);
  }
  uint64_t value = 0;
  for (size_t i = 0; i < Bytes; ++i) value = value << 8 | static_cast<uint64_t>(from[i]);
  return value;
}

template <size_t Bytes>
constexpr void store_be(std::byte* to, uint64_t value) {
  static_assert(Bytes >= 1 && Bytes <= 8);
  if (detail::is_word<Bytes> && !std::is_constant_evaluated()) {
    const auto word = detail::big_endian(static_cast<detail::Word<Bytes>>(value));
    std::memcpy(to, &word, sizeof word);
    return;
  }
  for (size_t i = 0; i < Bytes; ++i) to[i] = static_cast<std::byte>(value >> 8 * (Bytes - 1 - i));
}

}  // namespace urma
