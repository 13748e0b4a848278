// SPDX-License-Identifier: Apache-2.0
#include "transport/rtp/rtt.h"

#include <cmath>

#include "base/prng.h"
#include "tests/catch.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;
using transport::RttEstimator;

TEST_CASE("a round trip that is presumed is not the least one") {
  RttEstimator rtt(Duration{});
  CHECK(rtt.smoothed() == 1ms);
  CHECK(rtt.least() == Duration{});
  rtt.add(40ms);
  CHECK(rtt.least() == 40ms);
  rtt.add(50ms);
  rtt.add(30ms);
  CHECK(rtt.least() == 30ms);
}

// The filter of RFC 6298, in floating point.
struct Model {
  double smoothed;
  double variation;
  void add(double sample) {
    variation += (std::abs(sample - smoothed) - variation) / 4;
    smoothed += (sample - smoothed) / 8;
  }
};

double real(Duration duration) { return static_cast<double>(duration.count()); }

TEST_CASE("the estimate and the time-out follow the filter of RFC 6298") {
  Prng prng(1);
  for (int round = 0; round < 50; ++round) {
    const Duration first(static_cast<int64_t>(prng.between(1000, 20'000'000)));
    RttEstimator rtt(first);
    Model model{real(first), real(first) / 2};
    Duration least = first;
    for (int i = 0; i < 300; ++i) {
      const Duration sample(static_cast<int64_t>(prng.between(1000, 30'000'000)));
      rtt.add(sample);
      model.add(real(sample));
      least = std::min(least, sample);
      REQUIRE(rtt.least() == least);
      REQUIRE(std::abs(real(rtt.smoothed()) - model.smoothed) < 20);
      const double timeout =
          std::clamp(model.smoothed + 4 * model.variation, real(1ms), real(200ms));
      REQUIRE(std::abs(real(rtt.timeout(0, 1ms)) - timeout) < 100);
    }
  }
}

TEST_CASE("before any sample the estimate is the round trip of the set-up") {
  const RttEstimator rtt(10ms);
  CHECK(rtt.smoothed() == 10ms);
  CHECK(rtt.least() == 10ms);
  CHECK(rtt.timeout(0, 1ms) == 30ms);  // RFC 6298: R + 4 * R / 2
}

TEST_CASE("on a path of constant delay the time-out settles near the round trip") {
  RttEstimator rtt(50ms);
  for (int i = 0; i < 400; ++i) rtt.add(5ms);
  CHECK(rtt.smoothed() >= 5ms);
  CHECK(rtt.smoothed() < 5ms + 100ns);
  CHECK(rtt.timeout(0, 1ms) < 5ms + 200ns);
  CHECK(rtt.least() == 5ms);
}

TEST_CASE("each time-out in a row doubles the next one, within bounds and without overflow") {
  RttEstimator rtt(2ms);
  for (int i = 0; i < 200; ++i) rtt.add(2ms);
  for (unsigned tries = 0; tries < 6; ++tries) {
    CHECK(std::abs(real(rtt.timeout(tries, 1ms)) - real(2ms) * (1 << tries)) < 20'000);
  }
  for (unsigned tries = 7; tries <= 300; ++tries) {
    CHECK(rtt.timeout(tries, 1ms) == RttEstimator::most_timeout);
  }
}

TEST_CASE("a time-out is at least 1 ms, and at most 200 ms, or on a long path 1 s") {
  RttEstimator fast(1us);
  for (int i = 0; i < 100; ++i) fast.add(1us);
  CHECK(fast.timeout(0, 1ms) == 1ms);
  CHECK(fast.timeout(1, 1ms) == 2ms);
  CHECK(fast.timeout(200, 1ms) == 200ms);
  RttEstimator slow(30s);
  CHECK(slow.timeout(0, 1ms) == 1s);
  CHECK(slow.timeout(UINT8_MAX, 1ms) == 1s);
  RttEstimator satellite(600ms);
  for (int i = 0; i < 100; ++i) satellite.add(600ms);
  CHECK(satellite.timeout(0, 1ms) >= 600ms);
  CHECK(satellite.timeout(0, 1ms) < 620ms);
  CHECK(satellite.timeout(5, 1ms) == satellite.timeout(0, 1ms));
}

}  // namespace
}  // namespace urma::test
