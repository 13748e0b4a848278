// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_perf/columns.h"

#include <algorithm>
#include <string>

#include "apps/urma_perf/tests.h"
#include "tests/catch.h"

namespace urma::test {
namespace {

using namespace apps::perf;

size_t width_of(const std::vector<const Column*>& columns) {
  size_t width = 0;
  for (const Column* one : columns) width += static_cast<size_t>(one->width) + 1;
  return width - 1;
}

std::string titles(const std::vector<const Column*>& columns) {
  std::string out;
  for (const Column* one : columns) out += (out.empty() ? "" : " ") + std::string(one->title);
  return out;
}

TEST_CASE("a table of 80 characters has what is asked most, and the limit") {
  const auto columns = columns_for(80, {.limit = true});
  CHECK(width_of(columns) <= 80);
  CHECK(titles(columns) == "test size p50 us p99 msg/s GB/s Gbit/s wrong limit x limit");
}

TEST_CASE("a table whose rows differ in their Jetties shows how many there are") {
  const auto columns = columns_for(80, {.limit = true, .jetties = true});
  CHECK(width_of(columns) <= 80);
  CHECK(titles(columns) == "test size Jetty p50 us p99 msg/s GB/s wrong limit x limit");
}

TEST_CASE("a table of blocks has the times of their list, and the one write beside them") {
  const auto columns = columns_for(80, {.plan = true});
  CHECK(width_of(columns) <= 80);
  CHECK(titles(columns) == "blocks entries works prep us post us p50 us GB/s one us of one wrong");
}

TEST_CASE("a table fits into each screen, and a wider one has all columns of a narrower one") {
  for (const bool limit : {false, true}) {
    size_t before = 0;
    for (size_t width = 80; width < 220; ++width) {
      const auto columns = columns_for(width, {.limit = limit});
      CHECK(width_of(columns) <= width);
      CHECK(columns.size() >= before);
      before = columns.size();
    }
    CHECK(before == columns_for(SIZE_MAX, {.limit = limit}).size());
  }
}

TEST_CASE("without a limit no column is about limits") {
  for (const Column* one : columns_for(SIZE_MAX, {})) CHECK_FALSE(one->of_limit);
}

TEST_CASE("each limit fits into its column") {
  const auto columns = columns_for(80, {.limit = true});
  const Column& column = **std::ranges::find(columns, "limit", &Column::title);
  for (const char* const test : {"write_bw", "write_imm_lat"}) {
    for (double limit = 1e6; limit < 1e12; limit *= 1.7) {
      apps::perf::Result result;
      result.what = {.test = find_test(test), .bytes = 1 << 20};
      result.limit_of_clean_network = true;
      result.rounds = {{.limit = result.limit_unit() == "us" ? limit / 1e8 : limit, .times = {}}};
      INFO(column.text(result));
      CHECK(column.text(result).size() <= 10);
    }
  }
}

TEST_CASE("numbers have three digits, and no more than three decimals in a narrow column") {
  CHECK(short_number(0) == "0");
  CHECK(short_number(-1) == "0");
  CHECK(short_number(0.0000331) == "<.001");
  CHECK(short_number(0.00245) == "0.002");
  CHECK(short_number(0.0999) == "0.100");
  CHECK(short_number(4.974) == "4.97");
  CHECK(short_number(77.54) == "77.5");
  CHECK(short_number(1234.5) == "1234");
  CHECK(three_digits(0.0123) == "0.0123");
  CHECK(rate_text(1'180'000) == "1.18M");
  CHECK(latency_text(2.041) == "2.04");
  CHECK(latency_text(999'999) == "999999");
  CHECK(latency_text(1'167'589) == "1.17s");
}

}  // namespace
}  // namespace urma::test
