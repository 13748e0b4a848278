// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_perf/hgrm.h"

#include <sstream>
#include <string>
#include <vector>

#include "tests/catch.h"

namespace urma::apps::perf {
namespace {

struct Line {
  double value = 0;
  double percentile = 0;
  uint64_t total = 0;
};

std::vector<Line> lines_of(const std::string& text) {
  std::vector<Line> out;
  std::istringstream in(text);
  for (std::string row; std::getline(in, row);) {
    std::istringstream words(row);
    Line line;
    if (words >> line.value >> line.percentile >> line.total) out.push_back(line);
  }
  return out;
}

}  // namespace

TEST_CASE("a percentile file has the form that HdrHistogram's plotters read") {
  Histogram histogram;
  for (uint64_t ns = 1000; ns <= 100'000; ns += 1000) histogram.record(ns);
  const std::string text = hgrm_text(histogram, 1e3);
  CHECK(text.starts_with("       Value     Percentile TotalCount 1/(1-Percentile)\n\n"));
  CHECK(text.find("\n      50.015 0.500000000000         50           2.00\n") != text.npos);
  CHECK(text.find("\n     100.000 1.000000000000        100\n") != text.npos);
  CHECK(text.find("#[Max     =      100.000, Total count    =          100]\n") != text.npos);
  CHECK(text.ends_with("SubBuckets     =         2048]\n"));
}

TEST_CASE("the lines of a percentile file rise to all values, and agree with the percentiles") {
  Histogram histogram;
  for (uint64_t i = 0; i < 20'000; ++i) histogram.record(i * i);
  const std::vector<Line> lines = lines_of(hgrm_text(histogram, 1e3));
  REQUIRE(lines.size() > 50);
  for (size_t i = 1; i < lines.size(); ++i) {
    REQUIRE(lines[i].value >= lines[i - 1].value);
    REQUIRE(lines[i].percentile > lines[i - 1].percentile);
    REQUIRE(lines[i].total >= lines[i - 1].total);
    const double percentile = static_cast<double>(histogram.percentile(lines[i].percentile)) / 1e3;
    REQUIRE(lines[i].value >= percentile * 0.998 - 0.001);
    REQUIRE(lines[i].value <= percentile * 1.002 + 0.001);
  }
  CHECK(lines.back().total == histogram.count());
  CHECK(lines.back().percentile == 1);
}

TEST_CASE("the percentile file of merged histograms is that of all their values") {
  Histogram all;
  std::vector<Histogram> threads(3);
  for (uint64_t i = 1; i < 30'000; ++i) {
    all.record(i * 37 % 100'003);
    threads[i % threads.size()].record(i * 37 % 100'003);
  }
  Histogram merged;
  for (const Histogram& one : threads) merged.merge(one);
  CHECK(hgrm_text(merged, 1e3) == hgrm_text(all, 1e3));
}

TEST_CASE("an empty histogram has a percentile file without lines") {
  CHECK(lines_of(hgrm_text(Histogram(), 1e3)).empty());
}

TEST_CASE("a single value, and values in picoseconds, are written exactly") {
  Histogram histogram;
  histogram.record(4321);
  const std::vector<Line> lines = lines_of(hgrm_text(histogram, 1e6));
  REQUIRE(lines.size() == 2);
  CHECK(lines.front().value == 0.004321);
  CHECK(lines.back().percentile == 1);
}

}  // namespace urma::apps::perf
