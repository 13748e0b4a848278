#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
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

// Big-endian integers of 1 to 8 bytes. Words are said to be words: compilers do not find them in a
// loop reliably.
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

// A header as whole words: each of its bytes is read, or written, once.
template <size_t Size>
class HeaderWords {
 public:
  HeaderWords() = default;
  explicit HeaderWords(std::span<const std::byte, Size> from) {
    for (size_t i = 0; i < count; ++i) words_[i] = load_be<8>(from.data() + 8 * i);
    if constexpr (rest > 0) words_[count] = load_be<rest>(from.data() + 8 * count) << unused;
  }
  void store(std::span<std::byte, Size> to) const {
    for (size_t i = 0; i < count; ++i) store_be<8>(to.data() + 8 * i, words_[i]);
    if constexpr (rest > 0) store_be<rest>(to.data() + 8 * count, words_[count] >> unused);
  }
  uint64_t& word(size_t i) { return words_[i]; }
  uint64_t word(size_t i) const { return words_[i]; }

 private:
  static constexpr size_t count = Size / 8;
  static constexpr size_t rest = Size % 8;
  static constexpr size_t unused = 64 - 8 * rest;
  std::array<uint64_t, count + (rest > 0)> words_{};
};

// A field of a header, placed as the specification draws it: bits counted from the most
// significant bit of byte 0. The position is written once and serves parsing and emitting; that it
// lies inside the header is checked when compiled, because headers are spans of fixed extent.
// `set` ORs into zeroed bytes unless the field fills whole bytes.
template <size_t Position, size_t Width>
struct Field {
  static_assert(Width >= 1 && Width <= 64);
  static constexpr size_t first_byte = Position / 8;
  static constexpr size_t bytes = (Position + Width - 1) / 8 - first_byte + 1;
  static_assert(bytes <= 8);
  static constexpr size_t shift = bytes * 8 - Position % 8 - Width;
  static constexpr uint64_t mask = Width == 64 ? ~uint64_t{0} : (uint64_t{1} << Width % 64) - 1;
  static constexpr bool in_one_word = Position % 64 + Width <= 64;
  static constexpr size_t word_shift = in_one_word ? 64 - Position % 64 - Width : 0;
  static constexpr bool whole_bytes = Position % 8 == 0 && Width % 8 == 0;

  template <size_t Size>
  static constexpr uint64_t get(std::span<const std::byte, Size> header) {
    static_assert(first_byte + bytes <= Size, "the field lies outside its header");
    return load_be<bytes>(header.data() + first_byte) >> shift & mask;
  }

  // In words, of which a field lies in one.
  template <size_t Size>
  static uint64_t get(const HeaderWords<Size>& header) {
    static_assert(in_one_word && first_byte + bytes <= Size);
    return header.word(Position / 64) >> word_shift & mask;
  }
  template <size_t Size>
  static void set(HeaderWords<Size>& header, uint64_t value) {
    static_assert(in_one_word && first_byte + bytes <= Size);
    header.word(Position / 64) |= (value & mask) << word_shift;
  }

  template <size_t Size>
  static constexpr void set(std::span<std::byte, Size> header, uint64_t value) {
    static_assert(first_byte + bytes <= Size, "the field lies outside its header");
    std::byte* at = header.data() + first_byte;
    if constexpr (whole_bytes) {
      store_be<bytes>(at, value);
    } else {
      store_be<bytes>(at, load_be<bytes>(at) | (value & mask) << shift);
    }
  }
};

template <size_t Size>
using HeaderView = std::span<const std::byte, Size>;
template <size_t Size>
using HeaderBytes = std::span<std::byte, Size>;

// Zeroes a header, so that reserved bits are zero and narrow fields can be set.
template <size_t Size>
void clear(HeaderBytes<Size> header) {
  std::memset(header.data(), 0, Size);
}

}  // namespace urma
