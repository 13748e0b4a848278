// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_perf/hgrm.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

namespace urma::apps::perf {
namespace {

// The percentiles of the lines, in percent.
class Ladder {
 public:
  double level() const { return level_; }
  void advance() {
    constexpr double lines_per_halving = 5;
    const double halvings = std::floor(std::log2(100 / (100 - level_))) + 1;
    level_ += 100 / (lines_per_halving * std::exp2(halvings));
  }

 private:
  double level_ = 0;
};

}  // namespace

std::string hgrm_text(const Histogram& histogram, double units_per_us) {
  const int decimals = units_per_us > 1e3 ? 6 : 3;
  const auto us = [&](uint64_t value) { return static_cast<double>(value) / units_per_us; };
  std::string out = fmt::format("{:>12} {:>14} {:>10} {:>14}\n\n", "Value", "Percentile",
                                "TotalCount", "1/(1-Percentile)");
  const auto all = static_cast<double>(histogram.count());
  Ladder ladder;
  uint64_t seen = 0;
  histogram.for_each([&](uint64_t, uint64_t high, uint64_t count) {
    seen += count;
    const double value = us(std::min(high, histogram.max()));
    for (; ladder.level() <= 100 * static_cast<double>(seen) / all; ladder.advance()) {
      out += fmt::format("{:12.{}f} {:14.12f} {:10} {:14.2f}\n", value, decimals,
                         ladder.level() / 100, seen, 100 / (100 - ladder.level()));
      // All further lines would have the largest value.
      if (seen == histogram.count()) return;
    }
  });
  if (seen > 0) {
    out += fmt::format("{:12.{}f} {:14.12f} {:10}\n", us(histogram.max()), decimals, 1.0, seen);
  }
  constexpr int sub_buckets = 2048;  // in HdrHistogram's words: three digits
  const int powers = static_cast<int>(std::bit_width(histogram.max())) - 11;
  out += fmt::format("#[Mean    = {:12.{}f}, StdDeviation   = {:12.{}f}]\n",
                     histogram.mean() / units_per_us, decimals,
                     histogram.deviation() / units_per_us, decimals);
  out += fmt::format("#[Max     = {:12.{}f}, Total count    = {:12}]\n", us(histogram.max()),
                     decimals, histogram.count());
  return out + fmt::format("#[Buckets = {:12}, SubBuckets     = {:12}]\n", std::max(powers, 0) + 1,
                           sub_buckets);
}

}  // namespace urma::apps::perf
