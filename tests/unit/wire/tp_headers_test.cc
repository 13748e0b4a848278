// SPDX-License-Identifier: Apache-2.0
#include "wire/tp_headers.h"

#include <vector>

#include "tests/catch.h"
#include "tests/unit/bit_flips.h"

namespace urma::test {
namespace {

// UB 4.2, 3.4.

// UB 4.2.2, among others
TEST_CASE("an RTPH is read as it was written, and each bit belongs to a field or is reserved") {
  check_header<Rtph>(bits(66, 71));
}

TEST_CASE("a UTPH contains its padding and the next header; the rest is reserved") {
  check_header<Utph>(bits(16, 127));
}

TEST_CASE("addresses are read as they were written, the partition in the low 24 bits of its word") {
  check_header<Addresses>(bits(0, 7));
}

TEST_CASE("transport headers of another version or, for UTPH, opcode are refused") {
  for (unsigned version = 1; version <= 3; ++version) {
    std::array<std::byte, 16> wire;
    Rtph{}.emit(wire);
    wire[1] |= static_cast<std::byte>(version << 6);
    CHECK_FALSE(Rtph::parse(wire));
    Utph{}.emit(wire);
    wire[1] |= static_cast<std::byte>(version << 6);
    CHECK_FALSE(Utph::parse(wire));
  }
  for (unsigned opcode = 1; opcode < 256; ++opcode) {
    std::array<std::byte, 16> wire;
    Utph{}.emit(wire);
    wire[0] = static_cast<std::byte>(opcode);
    CHECK_FALSE(Utph::parse(wire));
  }
}

std::vector<std::byte> emitted(const Saetph& header) {
  std::vector<std::byte> wire(Saetph::max_size + 1, std::byte{0xee});
  const size_t size = header.emit(wire);
  REQUIRE(wire[size] == std::byte{0xee});
  wire.resize(size);
  return wire;
}

TEST_CASE("a SAETPH of each bitmap size is read as written; cut off anywhere it is refused") {
  Prng prng(1);
  for (uint32_t code = 0; code <= 4; ++code) {
    for (int round = 0; round < 20; ++round) {
      auto header = random_header<Saetph>(prng);
      header.bit_count = 64u << code;
      for (uint32_t word = header.bit_count / 64; word < header.bits.size(); ++word) {
        header.bits[word] = 0;
      }
      auto wire = emitted(header);
      REQUIRE(wire.size() == 4 + (8u << code));
      REQUIRE(static_cast<uint32_t>(wire[0]) == code);
      REQUIRE(Saetph::parse(wire) == header);
      for (size_t size = 0; size < wire.size(); ++size) {
        REQUIRE_FALSE(Saetph::parse(std::span(wire).first(size)));
      }
      wire[0] |= std::byte{0xf8};  // reserved
      wire.push_back(std::byte{0xff});
      REQUIRE(Saetph::parse(wire) == header);
    }
  }
}

TEST_CASE("a SAETPH of an undefined bitmap size is refused, however long") {
  for (const unsigned code : {5u, 6u, 7u}) {
    std::vector<std::byte> wire(2000);
    wire[0] = static_cast<std::byte>(code);
    CHECK_FALSE(Saetph::parse(wire));
  }
}

// INFERRED: the drawing in the specification does not show this.
TEST_CASE("bit i of a SAETPH is bit i modulo 8 of byte i / 8, least significant first") {
  for (uint32_t i = 0; i < Saetph::max_bits; ++i) {
    Saetph header{.max_received = 0, .bit_count = Saetph::max_bits, .bits = {}};
    header.set_bit(i);
    const auto wire = emitted(header);
    for (size_t byte = 0; byte < Saetph::max_bits / 8; ++byte) {
      const auto expected = static_cast<std::byte>(byte == i / 8 ? 1 << i % 8 : 0);
      REQUIRE(wire[Saetph::fixed_size + byte] == expected);
    }
    const auto back = Saetph::parse(wire);
    for (uint32_t other = 0; other < Saetph::max_bits; ++other) {
      REQUIRE(back->bit(other) == (other == i));
    }
  }
}

}  // namespace
}  // namespace urma::test
