// SPDX-License-Identifier: Apache-2.0
#include "wire/nth.h"

#include "tests/catch.h"
#include "tests/unit/bit_flips.h"
#include "wire/cci.h"

namespace urma::test {
namespace {

TEST_CASE(
    "an NTH of each format is read as it was written, and each bit belongs to a field or is "
    "reserved") {
  check_header<Cna16Nth>({});
  check_header<Cna24Nth>(bits(76, 76));
  check_header<IpNth>(bits(16, 16));
}

template <class Nth>
void check_edited_in_place() {
  Prng prng(Nth::size);
  for (int round = 0; round < 100; ++round) {
    auto header = random_header<Nth>(prng);
    std::array<std::byte, Nth::size> wire;
    header.emit(wire);
    const auto edited = random_header<CaqmCci>(prng);
    edited.emit(std::span(wire).template subspan<Nth::cci_at, CaqmCci::size>());
    header.cci = cci_of(edited);
    REQUIRE(Nth::parse(wire) == header);
  }
}

TEST_CASE("a switch edits the CCI where it lies in an NTH, and changes nothing else") {
  check_edited_in_place<Cna16Nth>();
  check_edited_in_place<Cna24Nth>();
  check_edited_in_place<IpNth>();
}

}  // namespace
}  // namespace urma::test
