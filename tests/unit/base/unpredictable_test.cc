// SPDX-License-Identifier: Apache-2.0
// S2: a million values of each kind that an outsider must not predict look random: Jetty ids
// (Shuffle), TPNs and first PSNs (24 bits), incarnations and tokens (64 and 32 bits), and cookies
// of similar endpoints.

#include <cmath>
#include <vector>

#include "base/entropy.h"
#include "base/shuffle.h"
#include "base/siphash.h"
#include "tests/catch.h"

namespace urma::test {
namespace {

constexpr size_t draws = 1'000'000;

// Checks two properties; random values lack either of them far less often than once in 10^9 runs.
void check_chance(const std::vector<uint32_t>& values, unsigned bits, double of_chi = 1) {
  // Chi-square of the upper and of the lower eight bits: 255 degrees of freedom, deviation 22.6.
  for (const unsigned shift : {0u, bits - 8}) {
    std::vector<double> seen(256);
    for (const uint32_t value : values) ++seen[value >> shift & 0xff];
    const double expected = static_cast<double>(values.size()) / 256;
    double chi = 0;
    for (const double count : seen) chi += (count - expected) * (count - expected) / expected;
    CHECK(chi < 255 + 7 * 22.6);
    if (of_chi == 1) CHECK(chi > 255 - 7 * 22.6);
  }
  // Consecutive values are not correlated: deviation 1 / sqrt(n).
  double sum = 0, squares = 0, products = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const auto value = static_cast<double>(values[i]);
    sum += value;
    squares += value * value;
    products += value * static_cast<double>(values[(i + 1) % values.size()]);
  }
  const auto n = static_cast<double>(values.size());
  const double correlation = (n * products - sum * sum) / (n * squares - sum * sum);
  CHECK(std::abs(correlation) < 7 / std::sqrt(n));
}

TEST_CASE("S2: ids, TPNs, PSNs, incarnations and cookies look random", "[numbers]") {
  SecureEntropy entropy;
  std::vector<uint32_t> values(draws);
  for (uint32_t& value : values) value = entropy.next32();
  check_chance(values, 32);
  for (uint32_t& value : values) value = entropy.below(1 << 24);
  check_chance(values, 24);
  for (uint32_t& value : values) value = static_cast<uint32_t>(entropy.next() >> 32);
  check_chance(values, 32);

  // Each number occurs once, so nearly all samples are more even than random ones.
  const Shuffle ids(entropy.next(), entropy.next());
  for (size_t i = 0; i < draws; ++i) values[i] = ids(static_cast<uint32_t>(i));
  check_chance(values, 20, 0);

  const SipHash cookies(entropy.next(), entropy.next());
  for (size_t i = 0; i < draws; ++i) {
    const std::array<uint64_t, 3> claim = {1, i, 7};
    values[i] = static_cast<uint32_t>(cookies(claim));
  }
  check_chance(values, 32);
}

}  // namespace
}  // namespace urma::test
