// SPDX-License-Identifier: Apache-2.0
#include "tests/catch.h"
#include "tests/unit/transport/route_parts.h"

namespace urma::test {
namespace {

TEST_CASE("a report is repeated after 10 ms, 20 ms, and each 40 ms until it ends") {
  transport::AddressReport report;
  CHECK_FALSE(report.open());
  CHECK(report.due_at() == never);
  report.start(7, moment(0s));
  CHECK(report.open());
  CHECK(report.nonce() == 7);
  Time now = moment(0s);
  unsigned number = 0;
  for (const Duration wait : {10ms, 20ms, 40ms, 40ms, 40ms, 40ms, 40ms, 40ms}) {
    CHECK(report.due_at() == now);
    CHECK(report.next_try(now) == number++);
    now += wait;
  }
  CHECK(report.due_at() == now);
  // A newer list is reported from the beginning.
  report.start(8, moment(1s));
  CHECK(report.nonce() == 8);
  CHECK(report.next_try(moment(1s)) == 0);
  CHECK(report.due_at() == moment(1s) + 10ms);
  report.end();
  CHECK_FALSE(report.open());
  CHECK(report.due_at() == never);
}

}  // namespace
}  // namespace urma::test
