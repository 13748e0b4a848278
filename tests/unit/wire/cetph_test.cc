// SPDX-License-Identifier: Apache-2.0
#include "wire/cetph.h"

#include <algorithm>

#include "tests/catch.h"
#include "tests/unit/bit_flips.h"
#include "wire/frame.h"

namespace urma::test {
namespace {

TEST_CASE(
    "a CETPH of each form is read as it was written, and each bit belongs to a field or is "
    "reserved") {
  check_header<LdcpCetph>({});
  check_header<CaqmCetph>({});
  check_header<RateCetph>({});
  check_header<CnpCetph>(bits(3, 127));
}

TEST_CASE("the opcode gives the size of the CETPH, and the largest acknowledgement fits a frame") {
  for (unsigned opcode = 0; opcode < 256; ++opcode) {
    const size_t expected = opcode == 3 || opcode == 6 ? 8 : opcode == 8 ? 16 : 0;
    CHECK(cetph_size(static_cast<uint8_t>(opcode)) == expected);
  }
  CHECK(LdcpCetph::size == cetph_size(3));
  CHECK(CaqmCetph::size == cetph_size(3));
  CHECK(RateCetph::size == cetph_size(6));
  CHECK(CnpCetph::size == cetph_size(8));
  CHECK(Rtph::size + cetph_size(6) + Saetph::max_size <= TxFrame::head_room);
}

TEST_CASE("a set of report forms has what was added, never `none`, and no form beyond its bits") {
  ReportForms some;
  for (unsigned form = 0; form < 16; ++form)
    CHECK_FALSE(some.contain(static_cast<ReportForm>(form)));
  some = some.with(ReportForm::cnp).with(ReportForm::rate);
  CHECK(some.bits == 0x0a);
  for (unsigned form = 0; form < 16; ++form) {
    CHECK(some.contain(static_cast<ReportForm>(form)) == (form == 2 || form == 4));
  }
  for (unsigned form = 0; form < 16; ++form) {
    CHECK(ReportForms{0xff}.contain(static_cast<ReportForm>(form)) == (form >= 1 && form <= 8));
  }
}

TEST_CASE("bytes are counted in units of 2, and each packet is rounded up") {
  ByteCount count;
  uint64_t units = 0;
  for (uint32_t bytes = 0; bytes < 100; ++bytes) {
    count.add_packet(bytes);
    units += (bytes + 1) / 2;
    CHECK(uint64_t{count} == units);
  }
  count = ByteCount{};
  count.add_packet(0xffffffff);
  CHECK(uint64_t{count} == 0x80000000);
}

// A reference model that counts bytes in 64 bits.
TEST_CASE("the difference of two counts is right wherever they wrap, up to 4 GiB either way") {
  for (const uint64_t start : {0ull, 1ull, 0x7fffffffull, 0x80000000ull, 0xffffffffull}) {
    for (const int64_t ahead : {0ll, 1ll, 4096ll, 0x7fffffffll, -1ll, -4096ll, -0x80000000ll}) {
      INFO(start << " and " << ahead);
      const ByteCount earlier(start), later(start + static_cast<uint64_t>(ahead));
      CHECK(later - earlier == ahead * 2);
    }
  }
  Prng prng(1);
  ByteCount count(0xffff0000);
  uint64_t bytes = 0;
  for (int round = 0; round < 2000; ++round) {
    const ByteCount before = count;
    const uint64_t start = bytes;
    for (uint64_t packets = prng.below(100); packets > 0; --packets) {
      const auto size = static_cast<uint32_t>(2 * prng.below(5000));
      count.add_packet(size);
      bytes += size;
    }
    REQUIRE(count - before == static_cast<int64_t>(bytes - start));
    REQUIRE(before - count == -static_cast<int64_t>(bytes - start));
  }
  REQUIRE(bytes > 2 * 0x10000);  // the count has wrapped
}

TEST_CASE("what was granted stays at the largest value that the explicit rate's form can say") {
  for (const uint32_t granted : {0u, 0x7ffeu, 0x7fffu, 0x8000u, 0x8001u, 0xffffu}) {
    RateCetph report{.hint = static_cast<uint16_t>(granted)};
    std::array<std::byte, RateCetph::size> wire;
    report.emit(wire);
    CHECK(RateCetph::parse(wire).hint == std::min(granted, 0x7fffu));
    CHECK_FALSE(RateCetph::parse(wire).switched);
  }
}

TEST_CASE("Ack_Seq, Loc, I and C lie in the same bits in C-AQM's form and in the explicit rate's") {
  Prng prng(1);
  for (int round = 0; round < 200; ++round) {
    const auto rate = random_header<RateCetph>(prng);
    std::array<std::byte, RateCetph::size> wire;
    rate.emit(wire);
    const CaqmCetph caqm = CaqmCetph::parse(wire);
    REQUIRE(caqm.ack_seq == rate.ack_seq);
    REQUIRE(caqm.last_hop == rate.last_hop);
    REQUIRE(caqm.increase == rate.increase);
    REQUIRE(caqm.marked == rate.marked);
  }
}

}  // namespace
}  // namespace urma::test
