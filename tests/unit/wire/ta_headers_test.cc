// SPDX-License-Identifier: Apache-2.0
#include "wire/ta_headers.h"

#include "tests/catch.h"
#include "tests/unit/bit_flips.h"
#include "tests/unit/random_headers.h"

namespace urma::test {
namespace {

// UB 5.2, 5.3. The bits listed here are those that liburma neither uses nor understands.

TEST_CASE("a BTAH is read as it was written, and each bit belongs to a field or is ignored") {
  const Bits ignored = bits(10, 11)           // EE_bits
                       + bits(13, 14)         // Poison, reserved
                       + bits(32, 33)         // No_TAACK, ODR[2]
                       + bits(40, 41)         // reserved, E_bit
                       + bits(43, 43);        // of INI_RC_Type
  check_header<Btah>(ignored, bits(11, 11));  // EE_bits 01 (data not trusted) is refused
}

TEST_CASE("an ATAH is read as it was written, and each bit belongs to a field or is ignored") {
  check_header<Atah>(bits(10, 15)      // reserved, SV, Poison, reserved
                     + bits(40, 43));  // reserved, INI_RC_Type
}

TEST_CASE("extended headers are read as they were written; reserved bits are zero and ignored") {
  check_header<Maetah>(bits(64, 67) + bits(88, 95));
  check_header<Mtetah>(bits(8, 9));
  check_header<Tvetah>({});
  check_header<Ofstetah>(bits(0, 7));
  check_header<Immetah>({});
  check_header<Udetah>(bits(0, 7) + bits(12, 31));
  check_header<Ntfetah>(bits(64, 67) + bits(88, 95));
}

TEST_CASE("values that are too large do not change neighbouring fields") {
  std::array<std::byte, Btah::size> wire;
  Btah{.tassn = 0x12345, .rc_id = 0xfff00001}.emit(wire);
  CHECK(*Btah::parse(wire) == Btah{.tassn = 0x2345, .rc_id = 1});
  std::array<std::byte, Maetah::size> memory;
  Maetah{.address = 1, .token_id = 0xfff00002, .length = 3}.emit(memory);
  CHECK(Maetah::parse(memory) == Maetah{.address = 1, .token_id = 2, .length = 3});
  std::array<std::byte, Ofstetah::size> offset;
  Ofstetah{.kib = 0xff000004}.emit(offset);
  CHECK(offset[0] == std::byte{0});
  CHECK(Ofstetah::parse(offset) == Ofstetah{.kib = 4});
}

TEST_CASE("the word of a BTAH shows the members; messages of a queue differ only in some") {
  Prng prng(1);
  for (int round = 0; round < 10'000; ++round) {
    auto header = random_header<Btah>(prng);
    std::array<std::byte, Btah::size> wire;
    header.emit(wire);
    const uint64_t word = header.word();
    REQUIRE(word == load_be<Btah::size>(wire.data()));
    CHECK(static_cast<uint8_t>(Btah::opcode_of(word)) == header.opcode);
    CHECK(Btah::tassn_of(word) == header.tassn);
    CHECK(Btah::solicited_of(word) == header.solicited);
    CHECK(Btah::rc_id_of(word) == header.rc_id);
    const uint64_t expected = Btah::message_word(header.tassn, header.rc_id);
    const bool message = header.token_present && header.target_present && !header.user_data &&
                         !header.retry && !header.allocate && !header.in_context;
    CHECK(((word & Btah::fixed_bits) == expected) == message);
    header.rc_id ^= 1;
    CHECK((header.word() & Btah::fixed_bits) != expected);
  }
}

TEST_CASE("headers of another version than 0 are refused") {
  for (unsigned version = 1; version <= 3; ++version) {
    std::array<std::byte, 8> wire;
    Btah{}.emit(wire);
    wire[1] |= static_cast<std::byte>(version << 6);
    CHECK_FALSE(Btah::parse(wire));
    Atah{}.emit(wire);
    wire[1] |= static_cast<std::byte>(version << 6);
    CHECK_FALSE(Atah::parse(wire));
  }
}

}  // namespace
}  // namespace urma::test
