// SPDX-License-Identifier: Apache-2.0
#include "wire/cci.h"

#include "tests/catch.h"
#include "tests/unit/bit_flips.h"

namespace urma::test {
namespace {

TEST_CASE(
    "a CCI of each mode is read as it was written, and each bit belongs to a field or is "
    "reserved") {
  check_header<CaqmCci>({});
  check_header<FecnRttCci>({});
  check_header<FecnCci>(bits(4, 13));
}

TEST_CASE("each of the 65536 CCIs has at most one of the known modes, in its first three bits") {
  for (uint32_t cci = 0; cci < 0x10000; ++cci) {
    const auto word = static_cast<uint16_t>(cci);
    const uint32_t mode = cci >> 13;
    REQUIRE(parse_cci<CaqmCci>(word).has_value() == (mode == 0));
    REQUIRE(parse_cci<FecnRttCci>(word).has_value() == (mode == 2));
    REQUIRE(parse_cci<FecnCci>(word).has_value() == (mode == 4));
    if (mode == 0) REQUIRE(cci_of(*parse_cci<CaqmCci>(word)) == word);
    if (mode == 2) REQUIRE(cci_of(*parse_cci<FecnRttCci>(word)) == word);
    if (mode == 4) REQUIRE(cci_of(*parse_cci<FecnCci>(word)) == (word & 0xf003));
  }
}

TEST_CASE("a CCI of zeros is in mode C-AQM and asks for nothing") {
  CHECK(cci_of(CaqmCci{}) == 0);
  CHECK(parse_cci<CaqmCci>(0) == CaqmCci{});
}

}  // namespace
}  // namespace urma::test
