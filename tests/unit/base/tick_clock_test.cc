// SPDX-License-Identifier: Apache-2.0
#include "base/tick_clock.h"

#include "tests/catch.h"

namespace urma::test {
namespace {

TEST_CASE("a tick clock shows the time of the machine's clock, and never goes back") {
  TickClock clock;
  constexpr Duration tolerance = std::chrono::microseconds(10);
  const Time begin = read_clock();
  Time latest{};
  for (Time now = begin; now - begin < std::chrono::milliseconds(20); now = read_clock()) {
    const Time before = read_clock();
    const Time shown = clock.now();
    const Time after = read_clock();
    REQUIRE(shown >= latest);
    // Whatever runs in between, the time shown lies between the two readings.
    REQUIRE(shown >= before - tolerance);
    REQUIRE(shown <= after + tolerance);
    latest = shown;
  }
}

}  // namespace
}  // namespace urma::test
