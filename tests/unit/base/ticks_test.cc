// SPDX-License-Identifier: Apache-2.0
#include "base/ticks.h"

#include "tests/catch.h"

namespace urma::test {
namespace {

TEST_CASE("ticks measure the same time as the clock") {
  const Ticks& ticks = Ticks::of_this_machine();
  CHECK(&ticks == &Ticks::of_this_machine());
  // Whatever else runs between two readings, the ticks lie between those of the clock around them.
  const Time before = read_clock();
  const uint64_t begin = ticks.read();
  const Time inner = read_clock();
  while (read_clock() - inner < std::chrono::milliseconds(2)) {
  }
  const Time inner_end = read_clock();
  const uint64_t end = ticks.read();
  const Time after = read_clock();
  REQUIRE(end > begin);
  const double ns = static_cast<double>(end - begin) * ticks.ns_per_tick();
  constexpr double tolerance = .02;
  CHECK(ns > static_cast<double>((inner_end - inner).count()) * (1 - tolerance));
  CHECK(ns < static_cast<double>((after - before).count()) * (1 + tolerance));
}

}  // namespace
}  // namespace urma::test
