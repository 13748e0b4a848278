// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_perf/timetable.h"

#include "apps/urma_perf/clock.h"
#include "tests/catch.h"

namespace urma::apps::perf {
namespace {

constexpr int64_t begin = 1'000'000'000'000;

}  // namespace

TEST_CASE("messages of a timetable are due at equal intervals from the beginning of a round") {
  Timetable timetable(1000, 0, 1);
  timetable.begin(begin);
  CHECK(timetable.time_of(0) == begin + millisecond / 2);
  for (uint64_t k = 1; k < 5000; ++k) {
    REQUIRE(timetable.time_of(k) - timetable.time_of(k - 1) == millisecond);
  }
  timetable.begin(begin + second);
  CHECK(timetable.time_of(7) == begin + second + 7 * millisecond + millisecond / 2);
}

TEST_CASE("a round of a timetable has as many messages as its time and rate say") {
  for (const double rate : {10.0, 333.0, 1e5, 7e7}) {
    Timetable timetable(rate, 0, 1);
    timetable.begin(begin);
    const auto wanted = static_cast<double>(timetable.due_before(begin + 3 * second));
    CHECK(wanted >= 3 * rate - 1);
    CHECK(wanted <= 3 * rate + 1);
  }
}

TEST_CASE("messages that are due agree with their times") {
  Timetable timetable(1'234'567, 1, 3);
  timetable.begin(begin);
  CHECK(timetable.due_before(begin - second) == 0);
  CHECK(timetable.due_before(begin) == 0);
  for (uint64_t k = 0; k < 10'000; ++k) {
    REQUIRE(timetable.due_before(timetable.time_of(k)) == k);
    REQUIRE(timetable.due_before(timetable.time_of(k) + 1) == k + 1);
  }
}

TEST_CASE("threads share a rate, and take turns") {
  constexpr uint32_t threads = 4;
  int64_t last = 0;
  for (uint64_t k = 0; k < 100; ++k) {
    for (uint32_t thread = 0; thread < threads; ++thread) {
      Timetable timetable(1000, thread, threads);
      timetable.begin(begin);
      const int64_t due = timetable.time_of(k);
      if (last != 0) REQUIRE(due - last == millisecond);
      last = due;
    }
  }
}

TEST_CASE("a message that is due in centuries has a time") {
  Timetable timetable(0.1, 0, 1);
  timetable.begin(begin);
  CHECK(timetable.time_of(UINT64_MAX) > begin);
}

TEST_CASE("a rate is a number of messages per second, with K or M") {
  const MessageRate type;
  CHECK(type.read("5000") == 5000.0);
  CHECK(type.read("20K") == 20'000.0);
  CHECK(type.read("1.5M") == 1'500'000.0);
  CHECK(type.read("0.1") == 0.1);
  CHECK(type.read("1000M") == 1e9);
  for (const char* word :
       {"", "0", "-5", "+5", "1e3", "K", "5G", "5 K", "0.09", "1001M", "nan", "inf", "5/s"}) {
    INFO(word);
    CHECK_FALSE(type.read(word).has_value());
  }
}

}  // namespace urma::apps::perf
