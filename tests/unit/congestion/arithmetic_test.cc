// SPDX-License-Identifier: Apache-2.0
#include "congestion/arithmetic.h"

#include <cmath>

#include "tests/catch.h"

namespace urma::test {
namespace {

using congestion::chance_of;
using congestion::queue_code;
using congestion::queue_seconds;
using congestion::rate_code;
using congestion::rate_of;

TEST_CASE("a rate code has sixteen steps in an octave, from 10 Mb/s to 628 Gb/s") {
  CHECK(rate_of(0) == 1.25e6);
  for (unsigned code = 0; code < 256; ++code) {
    const double exact = 1.25e6 * std::exp2(code / 16.0);
    CHECK(std::fabs(rate_of(static_cast<uint8_t>(code)) / exact - 1) < 1e-12);
  }
}

TEST_CASE("each code is the code of its rate, but 0, which names no rate") {
  for (unsigned code = 0; code < 256; ++code) {
    const double rate = rate_of(static_cast<uint8_t>(code));
    for (const double chance : {0.0, 0.5, 0.999}) {
      CHECK(rate_code(rate, chance) == std::max(code, 1u));
    }
  }
}

TEST_CASE("the mean of many codes of a rate is the rate") {
  for (const double rate : {2e6, 1.2345e9, 12.5e9, 12.6e9}) {
    double sum = 0;
    constexpr int times = 20'000;
    for (int i = 0; i < times; ++i) sum += rate_of(rate_code(rate, chance_of(1, i)));
    CHECK(std::fabs(sum / times / rate - 1) < 0.001);
  }
}

TEST_CASE("a rate outside of the codes has the least or the largest one") {
  CHECK(rate_code(0, 0.5) == 1);
  CHECK(rate_code(-1, 0.5) == 1);
  CHECK(rate_code(std::nan(""), 0.5) == 1);
  CHECK(rate_code(1e300, 0.5) == 255);
}

TEST_CASE("a queue code is never less than the queue, and at most a fifth more") {
  CHECK(queue_code(0) == 0);
  CHECK(queue_code(-1) == 0);
  CHECK(queue_code(std::nan("")) == 0);
  CHECK(queue_code(1e-9) == 1);
  CHECK(queue_code(1) == 63);
  for (double queue = 64e-9; queue < 2.9e-3; queue *= 1.01) {
    const double decoded = queue_seconds(queue_code(queue));
    CHECK(decoded >= queue);
    CHECK(decoded < queue * 1.2);
  }
  for (uint8_t code = 0; code < 64; ++code) CHECK(queue_code(queue_seconds(code)) == code);
  CHECK(queue_seconds(255) == queue_seconds(63));
}

TEST_CASE("chance is uniform, and the same for the same seed and number") {
  double sum = 0, squares = 0;
  constexpr int times = 10'000;
  for (int i = 0; i < times; ++i) {
    const double chance = chance_of(7, i);
    REQUIRE(chance >= 0);
    REQUIRE(chance < 1);
    REQUIRE(chance == chance_of(7, i));
    sum += chance;
    squares += chance * chance;
  }
  CHECK(std::fabs(sum / times - 1.0 / 2) < 0.01);
  CHECK(std::fabs(squares / times - 1.0 / 3) < 0.01);
  CHECK(chance_of(7, 1) != chance_of(8, 1));
}

TEST_CASE("numbers outside of the range of a type become its bounds") {
  CHECK(congestion::whole_bytes(-1.5, 10) == 0);
  CHECK(congestion::whole_bytes(std::nan(""), 10) == 0);
  CHECK(congestion::whole_bytes(9.9, 10) == 9);
  CHECK(congestion::whole_bytes(1e300, UINT64_MAX) == UINT64_MAX);
  CHECK(congestion::duration_of(-1) == Duration{});
  CHECK(congestion::duration_of(1e-9) == Duration(1));
  CHECK(congestion::duration_of(1e300) == std::chrono::hours(1));
}

}  // namespace
}  // namespace urma::test
