// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <type_traits>

#include "base/bits.h"

namespace urma {

// How a header is laid out in bits. Each header struct declares one `Layout`, which names every
// member once with its position; reading and writing both follow from it, so they are inverse.
// Everything here is resolved when compiled: a header is a few shifts of whole words.

template <size_t Size>
using HeaderView = std::span<const std::byte, Size>;
template <size_t Size>
using HeaderBytes = std::span<std::byte, Size>;

// A header as 64-bit words in host order: each byte of it is loaded, or stored, once.
template <size_t Size>
class HeaderWords {
 public:
  HeaderWords() = default;
  explicit HeaderWords(HeaderView<Size> from) {
    for (size_t i = 0; i < count; ++i) words_[i] = load_be<8>(from.data() + 8 * i);
    if constexpr (rest > 0) words_[count] = load_be<rest>(from.data() + 8 * count) << unused;
  }
  void store(HeaderBytes<Size> to) const {
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

// A range of bits, counted as the specification draws them: bit 0 is the most significant bit of
// byte 0. It lies within one 64-bit word. `set` expects the bits to be zero, and ignores the part
// of a value that is too wide, so that it never reaches a neighbour.
template <size_t Position, size_t Width>
struct Field {
  static_assert(Width >= 1 && Position % 64 + Width <= 64, "a field lies within one word");
  static constexpr size_t shift = 64 - Position % 64 - Width;
  static constexpr uint64_t mask = Width == 64 ? ~uint64_t{0} : (uint64_t{1} << Width % 64) - 1;
  static constexpr uint64_t in_word = mask << shift;

  template <size_t Size>
  static uint64_t get(const HeaderWords<Size>& header) {
    static_assert(Position + Width <= Size * 8, "the field lies outside its header");
    return header.word(Position / 64) >> shift & mask;
  }
  template <size_t Size>
  static void set(HeaderWords<Size>& header, uint64_t value) {
    static_assert(Position + Width <= Size * 8, "the field lies outside its header");
    header.word(Position / 64) |= (value & mask) << shift;
  }
};

// ---- The parts of a layout. Each part overrides the functions of this base that it needs.
template <size_t Position, size_t Width>
struct HeaderPart {
  static constexpr size_t position = Position, width = Width;

  template <size_t Size>
  static bool accepts(const HeaderWords<Size>&) {
    return true;
  }
  template <class Header, size_t Size>
  static void read(const HeaderWords<Size>&, HeaderView<Size>, Header&) {}
  template <class Header, size_t Size>
  static void write(const Header&, HeaderWords<Size>&) {}
  template <class Header, size_t Size>  // after the words have been stored
  static void write_bytes(const Header&, HeaderBytes<Size>) {}
};

// A part for an integer, bool or enum member of the header's struct.
template <auto Pointer, size_t Position, size_t Width>
struct Member : HeaderPart<Position, Width> {
  template <class Header, size_t Size>
  static void read(const HeaderWords<Size>& words, HeaderView<Size>, Header& header) {
    using Value = std::remove_reference_t<decltype(header.*Pointer)>;
    header.*Pointer = static_cast<Value>(Field<Position, Width>::get(words));
  }
  template <class Header, size_t Size>
  static void write(const Header& header, HeaderWords<Size>& words) {
    Field<Position, Width>::set(words, static_cast<uint64_t>(header.*Pointer));
  }
};

// A Member whose values are written as the largest one that the field holds if they exceed it: for
// sums, which must not wrap.
template <auto Pointer, size_t Position, size_t Width>
struct SaturatingMember : Member<Pointer, Position, Width> {
  template <class Header, size_t Size>
  static void write(const Header& header, HeaderWords<Size>& words) {
    const auto value = static_cast<uint64_t>(header.*Pointer);
    Field<Position, Width>::set(words, std::min(value, Field<Position, Width>::mask));
  }
};

// A part for a member with 16 `bytes`: an EID, or the address of an endpoint.
template <auto Pointer, size_t Byte>
struct AddressMember : HeaderPart<Byte * 8, 128> {
  template <class Header, size_t Size>
  static void read(const HeaderWords<Size>&, HeaderView<Size> from, Header& header) {
    std::memcpy((header.*Pointer).bytes.data(), from.data() + Byte, 16);
  }
  template <class Header, size_t Size>
  static void write_bytes(const Header& header, HeaderBytes<Size> to) {
    std::memcpy(to.data() + Byte, (header.*Pointer).bytes.data(), 16);
  }
};

// A part for a constant that is written, and ignored when read.
template <size_t Position, size_t Width, uint64_t Value>
struct Constant : HeaderPart<Position, Width> {
  template <class Header, size_t Size>
  static void write(const Header&, HeaderWords<Size>& words) {
    Field<Position, Width>::set(words, Value);
  }
};

// A part for a constant that a header must have: bytes with another value there are not this
// header.
template <size_t Position, size_t Width, uint64_t Value>
struct Required : Constant<Position, Width, Value> {
  template <size_t Size>
  static bool accepts(const HeaderWords<Size>& words) {
    return Field<Position, Width>::get(words) == Value;
  }
};

// The layout of a whole header. Bits that no part names are reserved: written as zero, ignored when
// read.
template <size_t Size, class... Parts>
struct HeaderLayout {
  // Returns false, and leaves `header` as it was, if a required constant has another value.
  template <class Header>
  static bool read(HeaderView<Size> from, Header& header) {
    const HeaderWords<Size> words(from);
    if (!(Parts::accepts(words) && ...)) return false;
    (Parts::read(words, from, header), ...);
    return true;
  }
  template <class Header>
  static void write(const Header& header, HeaderBytes<Size> to) {
    static_assert(parts_are_disjoint(), "two parts of a header share a bit");
    HeaderWords<Size> words;
    (Parts::write(header, words), ...);
    words.store(to);
    (Parts::write_bytes(header, to), ...);
  }

 private:
  static constexpr bool parts_are_disjoint() {
    std::array<bool, Size * 8> taken{};
    bool disjoint = true;
    const auto take = [&](size_t position, size_t width) {
      for (size_t bit = position; bit < position + width; ++bit) {
        disjoint = disjoint && !taken[bit];
        taken[bit] = true;
      }
    };
    (take(Parts::position, Parts::width), ...);
    return disjoint;
  }
};

// Parses a header for which every sequence of `size` bytes is valid.
template <class Header>
Header read_header(HeaderView<Header::size> in) {
  Header header;
  Header::Layout::read(in, header);
  return header;
}
// Parses a header with required constants. Returns nothing if one of these has another value.
template <class Header>
std::optional<Header> parse_header(HeaderView<Header::size> in) {
  Header header;
  if (!Header::Layout::read(in, header)) return std::nullopt;
  return header;
}

}  // namespace urma
