// SPDX-License-Identifier: Apache-2.0
#include "wire/layout.h"

#include <array>
#include <utility>
#include <vector>

#include "base/prng.h"
#include "tests/catch.h"

namespace urma::test {
namespace {

constexpr size_t header_bytes = 12;
using OneHeader = std::array<std::byte, header_bytes>;

bool bit(const OneHeader& bytes, size_t i) {
  return (static_cast<unsigned>(bytes[i / 8]) >> (7 - i % 8) & 1) != 0;
}

// Compares a field with reading and writing the header bit by bit. Without Catch's macros, because
// it is instantiated some 600 times.
template <size_t Position, size_t Width>
bool field_is_right(Prng& prng) {
  using TheField = Field<Position, Width>;
  OneHeader bytes;
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(prng.next());
  uint64_t expected = 0;
  for (size_t i = 0; i < Width; ++i) expected = expected << 1 | bit(bytes, Position + i);
  bool right = TheField::get(HeaderWords<header_bytes>(bytes)) == expected;

  // A value that is too wide for the field does not reach its neighbours.
  HeaderWords<header_bytes> words;
  const uint64_t value = prng.next();
  TheField::set(words, value);
  OneHeader written;
  words.store(written);
  for (size_t i = 0; i < header_bytes * 8; ++i) {
    const bool inside = i >= Position && i < Position + Width;
    right &= bit(written, i) == (inside && (value >> (Position + Width - 1 - i) & 1) != 0);
  }
  // Other fields stay as they are.
  OneHeader full;
  full.fill(std::byte{0xff});
  HeaderWords<header_bytes> ones{full};
  TheField::set(ones, TheField::mask);
  OneHeader stored;
  ones.store(stored);
  return right && stored == full;
}

template <size_t Position, size_t Width>
void check_field(Prng& prng, std::vector<std::pair<size_t, size_t>>& wrong) {
  if constexpr (Position % 64 + Width <= 64 && Position + Width <= header_bytes * 8) {
    if (!field_is_right<Position, Width>(prng)) wrong.emplace_back(Position, Width);
  }
}

template <size_t Position, size_t... Widths>
void check_widths(Prng& prng, std::vector<std::pair<size_t, size_t>>& wrong,
                  std::index_sequence<Widths...>) {
  (check_field<Position, Widths + 1>(prng, wrong), ...);
}

template <size_t... Positions>
void check_positions(Prng& prng, std::vector<std::pair<size_t, size_t>>& wrong,
                     std::index_sequence<Positions...>) {
  (check_widths<Positions>(prng, wrong, std::make_index_sequence<64>()), ...);
  (check_widths<64 + Positions>(prng, wrong, std::make_index_sequence<32>()), ...);
}

TEST_CASE("a field of any width at any place reads and writes exactly its bits") {
  Prng prng(1);
  std::vector<std::pair<size_t, size_t>> wrong;  // position, width
  for (int round = 0; round < 8; ++round) {
    check_positions(prng, wrong, std::make_index_sequence<8>());
  }
  CHECK(wrong == decltype(wrong){});
}

struct Sample {
  static constexpr size_t size = 20;

  uint32_t number = 7;
  bool flag = false;
  struct {
    std::array<std::byte, 16> bytes{};
  } address;

  using Layout =
      HeaderLayout<size, Required<0, 2, 2>, Constant<2, 6, 0x2a>, Member<&Sample::number, 8, 20>,
                   Member<&Sample::flag, 31, 1>, AddressMember<&Sample::address, 4>>;
};

TEST_CASE("a layout writes each member and constant in its bits, and zeros in reserved ones") {
  Sample sample;
  sample.number = 0xfabcde;
  sample.flag = true;
  sample.address.bytes.fill(std::byte{0x77});
  std::array<std::byte, Sample::size> out;
  out.fill(std::byte{0xee});
  Sample::Layout::write(sample, HeaderBytes<Sample::size>(out));
  CHECK(load_be<4>(out.data()) == 0xaaabcde1);
  for (size_t i = 4; i < out.size(); ++i) CHECK(out[i] == std::byte{0x77});
}

TEST_CASE("a layout reads members, ignores constants and reserved bits, and checks required ones") {
  std::array<std::byte, Sample::size> in;
  in.fill(std::byte{0x55});
  store_be<4>(in.data(), 0xbf123450);
  const auto sample = parse_header<Sample>(in);
  REQUIRE(sample);
  CHECK(sample->number == 0x12345);
  CHECK_FALSE(sample->flag);
  CHECK(sample->address.bytes[15] == std::byte{0x55});

  in[0] = std::byte{0x3f};
  CHECK_FALSE(parse_header<Sample>(in));
  Sample untouched;
  CHECK_FALSE(Sample::Layout::read(HeaderView<Sample::size>(in), untouched));
  CHECK(untouched.number == 7);
}

struct Sums {
  static constexpr size_t size = 2;
  uint16_t most = 0, other = 0;
  using Layout =
      HeaderLayout<size, SaturatingMember<&Sums::most, 0, 5>, Member<&Sums::other, 5, 11>>;
};

TEST_CASE("a saturating member is written as the largest value that fits, and read as any other") {
  for (const uint32_t value : {0u, 1u, 30u, 31u, 32u, 64u, 0xffffu}) {
    Sums sums;
    sums.most = static_cast<uint16_t>(value);
    sums.other = 0x2a5;
    std::array<std::byte, Sums::size> wire;
    Sums::Layout::write(sums, HeaderBytes<Sums::size>(wire));
    CHECK(read_header<Sums>(wire).most == std::min(value, 31u));
    CHECK(read_header<Sums>(wire).other == 0x2a5);
  }
}

}  // namespace
}  // namespace urma::test
