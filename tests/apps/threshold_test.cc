// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_perf/threshold.h"

#include <nlohmann/json.hpp>

#include "apps/common/failure.h"
#include "tests/catch.h"

namespace urma::test {
namespace {

using apps::perf::Threshold;

const nlohmann::json result = {{"test", "send_lat"}, {"device", "cxl:"}, {"size_bytes", 8},
                               {"p99_us", 5.0},      {"wrong", 0},       {"limit_unit", "us"}};

bool broken(const char* text) {
  return Threshold::read(text).value().broken_by(result).has_value();
}

TEST_CASE("a threshold is broken by values on its side of the bound") {
  CHECK(broken("p99_us>4.9"));
  CHECK_FALSE(broken("p99_us>5"));
  CHECK(broken("p99_us>=5"));
  CHECK_FALSE(broken("p99_us<5"));
  CHECK(broken("p99_us<=5"));
  CHECK(broken("p99_us<1e3"));
  CHECK_FALSE(broken("wrong>0"));
}

TEST_CASE("a broken threshold says of what, and with which value") {
  const auto why = Threshold::read("p99_us>=5").value().broken_by(result);
  CHECK(why.value() ==
        "send_lat cxl:, 8 bytes: p99_us is 5, so --fail-if p99_us>=5 ends this run with 3");
}

TEST_CASE("a text of another form is not a threshold") {
  for (const char* text : {"", ">", "p99_us", "p99_us>", ">5", "p99_us=5", "p99_us>5us",
                           "p99_us>>5", "p99_us>nan", "p99_us>inf", "p99_us> 5", "p99_us><5"}) {
    INFO(text);
    CHECK_FALSE(Threshold::read(text).has_value());
  }
}

TEST_CASE("a field that is not a number of the result is an error") {
  for (const char* text : {"p98_us>5", "limit_unit>5"}) {
    CHECK_THROWS_AS(Threshold::read(text).value().broken_by(result), apps::Failure);
  }
}

}  // namespace
}  // namespace urma::test
