// SPDX-License-Identifier: Apache-2.0
#include "base/prng.h"

#include <algorithm>
#include <vector>

#include "base/entropy.h"
#include "tests/catch.h"

namespace urma::test {
namespace {

// Bug reports name seeds, so the numbers of a seed never change.
TEST_CASE("a seed gives the numbers that xoshiro256** gives everywhere") {
  Prng zero(0);
  for (const uint64_t expected :
       {0x99ec5f36cb75f2b4u, 0xbf6e1f784956452au, 0x1a5f849d4933e6e0u, 0x6aa594f1262d2d2cu}) {
    CHECK(zero.next() == expected);
  }
  Prng other(42);
  for (const uint64_t expected :
       {0x15780b2e0c2ec716u, 0x6104d9866d113a7eu, 0xae17533239e499a1u, 0xecb8ad4703b360a1u}) {
    CHECK(other.next() == expected);
  }
}

TEST_CASE("a copied generator continues with the same numbers") {
  Prng one(5);
  one.next();
  Prng two = one;
  for (int i = 0; i < 100; ++i) REQUIRE(one.next() == two.next());
}

// Checks that each value occurs about as often as every other.
template <class Draw>
void check_even(uint64_t low, uint64_t high, Draw&& draw) {
  constexpr int each = 2000;
  std::vector<int> seen(high - low + 1);
  for (size_t i = 0; i < seen.size() * each; ++i) {
    const uint64_t value = draw();
    REQUIRE(value >= low);
    REQUIRE(value <= high);
    ++seen[value - low];
  }
  for (const int count : seen) {
    CHECK(count > each * 4 / 5);
    CHECK(count < each * 6 / 5);
  }
}

TEST_CASE("numbers below a bound are uniform, and never reach the bound") {
  Prng prng(1);
  for (const uint64_t bound : {1, 2, 3, 10, 37}) {
    check_even(0, bound - 1, [&] { return prng.below(bound); });
  }
  check_even(5, 9, [&] { return prng.between(5, 9); });
  check_even(7, 7, [&] { return prng.between(7, 7); });
  SeededEntropy entropy(1);
  check_even(0, 6, [&] { return entropy.below(7); });
}

TEST_CASE("numbers below a bound of more than 32 bits use all of its bits") {
  Prng prng(2);
  constexpr uint64_t bound = uint64_t{3} << 60;
  uint64_t highest = 0;
  for (int i = 0; i < 1000; ++i) highest = std::max(highest, prng.below(bound));
  CHECK(highest < bound);
  CHECK(highest > bound / 100 * 98);
}

TEST_CASE("chance is true as often as its argument says; for 0 and 1, exactly") {
  Prng prng(3);
  int hits = 0;
  for (int i = 0; i < 20'000; ++i) {
    const double unit = prng.unit();
    REQUIRE(unit >= 0);
    REQUIRE(unit < 1);
    REQUIRE_FALSE(prng.chance(0));
    REQUIRE(prng.chance(1));
    hits += prng.chance(0.05);
  }
  CHECK(hits > 850);
  CHECK(hits < 1150);
}

TEST_CASE("seeded entropy repeats with its seed; the kernel's entropy never repeats") {
  SeededEntropy one(9), two(9), other(10);
  CHECK(one.next() == two.next());
  CHECK(one.next32() == two.next32());
  CHECK(one.next() != other.next());
  SecureEntropy first, second;
  std::vector<uint64_t> drawn;
  for (int i = 0; i < 100; ++i) {
    drawn.push_back(first.next());
    drawn.push_back(second.next());
  }
  std::sort(drawn.begin(), drawn.end());
  CHECK(std::adjacent_find(drawn.begin(), drawn.end()) == drawn.end());
}

}  // namespace
}  // namespace urma::test
