// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_perf/histogram.h"

#include "base/prng.h"
#include "tests/catch.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace urma::apps::perf {

TEST_CASE("histogram buckets are 1/1024 of their value wide and adjacent") {
  size_t previous = 0;
  for (uint64_t value = 0; value < 100'000; ++value) {
    const size_t bucket = Histogram::bucket(value);
    REQUIRE((bucket == previous || bucket == previous + 1));
    REQUIRE(Histogram::lower_edge(bucket) <= value);
    REQUIRE(value < Histogram::lower_edge(bucket + 1));
    const uint64_t width = Histogram::lower_edge(bucket + 1) - Histogram::lower_edge(bucket);
    REQUIRE(width <= std::max<uint64_t>(1, value / 1024));
    previous = bucket;
  }
  REQUIRE(Histogram::lower_edge(Histogram::bucket(UINT64_MAX)) <= UINT64_MAX);
}

TEST_CASE("mean and deviation of a histogram agree with those of its values") {
  Histogram histogram;
  CHECK(histogram.mean() == 0);
  CHECK(histogram.deviation() == 0);
  for (const uint64_t value : {10, 20, 30, 40}) histogram.record(value, 25);
  CHECK(histogram.mean() == 25);
  CHECK(std::abs(histogram.deviation() - 11.18) < 0.01);
  histogram.record(1'000'000, 100);
  CHECK(std::abs(histogram.mean() / 500'012.5 - 1) < 1.0 / 1024);
}

TEST_CASE("histogram percentiles agree with a sorted list") {
  Prng prng(3);
  Histogram histogram;
  std::vector<uint64_t> values;
  for (int i = 0; i < 10'000; ++i) {
    values.push_back(prng.below(uint64_t{1} << prng.between(1, 40)));
    histogram.record(values.back());
  }
  std::ranges::sort(values);
  for (const double part : {0.001, 0.5, 0.9, 0.99, 0.999, 1.0}) {
    const auto rank = static_cast<size_t>(part * static_cast<double>(values.size())) - 1;
    const auto right = static_cast<double>(values[rank]);
    const auto seen = static_cast<double>(histogram.percentile(part));
    REQUIRE(seen >= right * (1 - 1.0 / 1024) - 1);
    REQUIRE(seen <= right * (1 + 1.0 / 1024) + 1);
  }
  REQUIRE(histogram.max() == values.back());
  REQUIRE(histogram.count() == values.size());
}

TEST_CASE("a merged histogram contains all values of both") {
  Histogram all;
  Histogram halves[2];
  for (uint64_t i = 0; i < 5000; ++i) {
    all.record(i * i);
    halves[i % 2].record(i * i);
  }
  halves[0].merge(halves[1]);
  for (int i = 0; i <= 100; ++i) {
    REQUIRE(halves[0].percentile(i / 100.0) == all.percentile(i / 100.0));
  }
  REQUIRE(halves[0].count() == all.count());
  REQUIRE(halves[0].max() == all.max());
}

TEST_CASE("an empty histogram reports zero, and a single value is reported exactly") {
  Histogram histogram;
  REQUIRE(histogram.percentile(0.5) == 0);
  REQUIRE(histogram.max() == 0);
  histogram.record(1000);
  REQUIRE(histogram.percentile(0.001) <= 1000);
  REQUIRE(histogram.percentile(1) == 1000);
  histogram.clear();
  REQUIRE(histogram.count() == 0);
}

}  // namespace urma::apps::perf
