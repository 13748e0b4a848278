// SPDX-License-Identifier: Apache-2.0
#include "fabric/line.h"

#include "base/prng.h"
#include "tests/catch.h"

namespace urma::fabric {
namespace {

using Wide = unsigned __int128;

TEST_CASE("packets leave a busy line at times whose rounding does not add up") {
  for (const uint64_t rate : {1ull, 3ull, 999'999'999ull, 12'500'000'000ull, 50'000'000'007ull}) {
    Prng prng(rate);
    Line line(rate);
    const Time begin(Duration(5));
    uint64_t bytes = 0;
    for (int packet = 0; packet < 2000; ++packet) {
      const auto size = static_cast<uint32_t>(prng.between(1, 4096));
      bytes += size;
      const Wide exact = (Wide{bytes} * 1'000'000'000 + rate - 1) / rate;
      REQUIRE(line.send(size, begin) == begin + Duration(static_cast<int64_t>(exact)));
    }
  }
}

TEST_CASE("a line that was idle begins a packet at once, and one without a rate takes no time") {
  Line line(1'000'000'000);
  CHECK(line.send(100, Time(Duration(10))) == Time(Duration(110)));
  CHECK(line.send(100, Time(Duration(50))) == Time(Duration(210)));
  CHECK(line.send(100, Time(Duration(210))) == Time(Duration(310)));
  CHECK(line.send(100, Time(Duration(1000))) == Time(Duration(1100)));
  CHECK(line.free_at() == Time(Duration(1100)));
  Line unlimited;
  CHECK(unlimited.send(1 << 20, Time(Duration(7))) == Time(Duration(7)));
  CHECK(unlimited.send(1 << 20, Time(Duration(3))) == Time(Duration(7)));
}

}  // namespace
}  // namespace urma::fabric
