#include "base/bits.h"

#include <array>
#include <utility>
#include <vector>

#include "base/prng.h"
#include "tests/catch.h"

namespace urma::test {
namespace {

constexpr size_t header_bytes = 12;
using Bytes = std::array<std::byte, header_bytes>;

bool bit(const Bytes& bytes, size_t i) {
  return (static_cast<unsigned>(bytes[i / 8]) >> (7 - i % 8) & 1) != 0;
}

// Held against reading and writing the header bit by bit. Free of Catch's macros: there are some
// 450 of these.
template <size_t Position, size_t Width>
bool field_is_right(Prng& prng) {
  using TheField = Field<Position, Width>;
  Bytes bytes;
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(prng.next());
  uint64_t expected = 0;
  for (size_t i = 0; i < Width; ++i) expected = expected << 1 | bit(bytes, Position + i);
  bool right = TheField::get(HeaderView<header_bytes>(bytes)) == expected;

  // What is too wide for the field does not reach its neighbours.
  Bytes written{};
  const uint64_t value = prng.next();
  TheField::set(HeaderBytes<header_bytes>(written), value);
  for (size_t i = 0; i < header_bytes * 8; ++i) {
    const bool inside = i >= Position && i < Position + Width;
    right &= bit(written, i) == (inside && (value >> (Position + Width - 1 - i) & 1) != 0);
  }
  // Fields that are already there stay.
  Bytes full;
  full.fill(std::byte{0xff});
  TheField::set(HeaderBytes<header_bytes>(full), TheField::mask);
  for (const std::byte byte : full) right &= byte == std::byte{0xff};
  return right;
}

template <size_t Position, size_t Width>
void check_field(Prng& prng, std::vector<std::pair<size_t, size_t>>& wrong) {
  if constexpr ((Position % 8 + Width + 7) / 8 <= 8) {
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
  (check_widths<16 + Positions>(prng, wrong, std::make_index_sequence<64>()), ...);
}

TEST_CASE("a field of any width at any place reads and writes exactly its bits") {
  Prng prng(1);
  std::vector<std::pair<size_t, size_t>> wrong;  // position, width
  for (int round = 0; round < 8; ++round) {
    check_positions(prng, wrong, std::make_index_sequence<8>());
  }
  CHECK(wrong == decltype(wrong){});
}

TEST_CASE("numbers are stored most significant byte first, in as many bytes as are asked for") {
  std::array<std::byte, 8> bytes{};
  store_be<3>(bytes.data() + 1, 0xaabbccdd);
  const std::array<std::byte, 8> expected{std::byte{0}, std::byte{0xbb}, std::byte{0xcc},
                                          std::byte{0xdd}};
  CHECK(bytes == expected);
  CHECK(load_be<3>(bytes.data() + 1) == 0xbbccdd);
  store_be<8>(bytes.data(), 0x0123456789abcdef);
  CHECK(bytes[0] == std::byte{0x01});
  CHECK(bytes[7] == std::byte{0xef});
  CHECK(load_be<8>(bytes.data()) == 0x0123456789abcdef);
  CHECK(load_be<1>(bytes.data() + 7) == 0xef);
}

TEST_CASE("clearing a header zeroes all of it and nothing behind") {
  std::array<std::byte, 5> bytes;
  bytes.fill(std::byte{0xff});
  clear(HeaderBytes<4>(bytes.data(), 4));
  CHECK(load_be<4>(bytes.data()) == 0);
  CHECK(bytes[4] == std::byte{0xff});
}

}  // namespace
}  // namespace urma::test
