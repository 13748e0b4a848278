// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_perf/result.h"

#include "apps/common/failure.h"
#include "apps/urma_perf/output.h"
#include "apps/urma_perf/table.h"
#include "tests/catch.h"

namespace urma::apps::perf {
namespace {

Round round_of(double p50_us, double limit_us, double waited_percent = 0) {
  Round round{.p50_us = p50_us, .limit = limit_us, .waited_percent = waited_percent, .times = {}};
  round.times.record(static_cast<uint64_t>(p50_us * 1000));
  return round;
}

Result latency_result() {
  Result result;
  result.what = {.test = find_test("write_imm_lat"), .bytes = 64};
  return result;
}

}  // namespace

TEST_CASE("a result without a message is an error, and is not left out") {
  const Options options;
  Output output(options, false);
  try {
    output.add(latency_result());
    FAIL("the result was accepted");
  } catch (const Failure& failure) {
    CHECK(failure.exit() == Exit::error);
    CHECK(std::string(failure.what()).find("write_imm_lat 64: no message arrived") == 0);
  }
}

TEST_CASE("the ratio is the median of the ratios of the rounds") {
  Result result = latency_result();
  for (const auto& [ours, limit] : {std::pair(4.0, 2.0), {3.0, 2.0}, {9.0, 3.0}}) {
    Round round = round_of(ours, limit);
    result.compare(round);
    result.rounds.push_back(round);
  }
  result.settle(3);
  REQUIRE(result.times_limit() == 2);
  REQUIRE(result.least_times_limit() == 1.5);
  REQUIRE(result.most_times_limit() == 3);
  REQUIRE(result.limit() == 2);
  REQUIRE(result.limit_unit() == "us");
}

TEST_CASE("a rate is reached if all messages were sent, in about the time that they need") {
  Result result;
  result.what = {.test = find_test("write_bw"), .bytes = 64};
  result.rate = 1000;
  CHECK(result.rate_percent() == 0);
  const auto add = [&](uint64_t messages, uint64_t unsent, bool discarded = false) {
    result.rounds.push_back({.seconds = 1,
                             .messages = messages,
                             .unsent = unsent,
                             .discarded = discarded,
                             .times = {}});
  };
  add(999, 0);
  CHECK(result.rate_reached());
  CHECK(result.rate_percent() == 99.9);
  add(500, 500, true);
  CHECK(result.rate_reached());
  CHECK(result.unsent() == 0);
  add(1000, 1);
  CHECK_FALSE(result.rate_reached());
  CHECK(result.unsent() == 1);
  result.rounds.back() = {.seconds = 1, .messages = 900, .times = {}};
  CHECK_FALSE(result.rate_reached());
}

TEST_CASE("the ratio of a rate is above one if liburma is slower") {
  Result result;
  result.what = {.test = find_test("write_bw"), .bytes = 64};
  Round round{.messages_per_second = 500, .limit = 1000, .times = {}};
  result.compare(round);
  REQUIRE(round.times_limit == 2);
  result.what.bytes = 1 << 20;
  round.limit = 250.0 * (1 << 20);
  result.compare(round);
  REQUIRE(round.times_limit == 0.5);
}

TEST_CASE("the times of a lane are recorded in picoseconds") {
  Result result;
  result.what = {.test = find_test("lane_write_lat"), .bytes = 8};
  result.times.record(120);
  result.times.record(4125);
  REQUIRE(result.limit_unit() == "us");
  REQUIRE(three_digits(result.us(0.5)) == "0.000120");
  REQUIRE(three_digits(result.max_us()) == "0.00413");
}

TEST_CASE("rounds without enough processor time are discarded if there are others") {
  Result result = latency_result();
  result.rounds = {round_of(4, 2), round_of(40, 2, 60), round_of(5, 2)};
  result.settle(3);
  REQUIRE(result.discarded() == 1);
  REQUIRE(result.times.count() == 2);
  REQUIRE(result.max_us() < 10);

  Result busy = latency_result();
  busy.rounds = {round_of(4, 2), round_of(40, 2, 60), round_of(50, 2, 60)};
  busy.settle(3);
  REQUIRE(busy.discarded() == 0);
  REQUIRE(busy.times.count() == 3);
}

TEST_CASE("a result without a limit uses the one that the same case measured on another network") {
  Result clean = latency_result();
  clean.rounds = {round_of(4, 2), round_of(4, 2)};
  clean.settle(2);
  Result lossy = latency_result();
  lossy.rounds = {round_of(8, 0)};
  lossy.settle(1);
  REQUIRE(!lossy.limit());
  lossy.borrow_limit(clean);
  REQUIRE(lossy.limit() == 2);
  REQUIRE(lossy.times_limit() == 4);
  REQUIRE(lossy.limit_of_clean_network);
}

TEST_CASE("numbers are printed with three significant digits") {
  REQUIRE(three_digits(0) == "0");
  REQUIRE(three_digits(0.0123) == "0.0123");
  REQUIRE(three_digits(2.041) == "2.04");
  REQUIRE(three_digits(11.72) == "11.7");
  REQUIRE(three_digits(1523.4) == "1523");
  REQUIRE(rate_text(987) == "987");
  REQUIRE(rate_text(705'123) == "705k");
  REQUIRE(rate_text(1.424e6) == "1.42M");
  REQUIRE(size_text(65536) == "64K");
  REQUIRE(size_text(1000) == "1000");
  REQUIRE(median({3, 1, 2}) == 2);
  REQUIRE(median({4, 1, 2, 3}) == 2.5);
}

}  // namespace urma::apps::perf
