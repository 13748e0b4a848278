// SPDX-License-Identifier: Apache-2.0
// Which route of a channel an acknowledgement reports on.

#include "transport/rtp/route_reports.h"

#include "tests/catch.h"
#include "tests/unit/transport/route_parts.h"

namespace urma::test {
namespace {

using transport::RouteReports;
using transport::RouteScheduler;
using transport::RouteWindows;

// Usable routes of a receiver that gives reports.
struct Reporting : TableOf {
  explicit Reporting(uint8_t count, ReportForm gives = ReportForm::ldcp) : TableOf(count) {
    for (uint8_t i = 0; i < count; ++i) table[i].usable = table[i].known = true;
    reports.open(gives, ReportForm::none);
    // The packets that are acknowledged one by one.
    for (uint8_t i = 0; i < count; ++i) arrive(i, 64);
    for (uint8_t i = 0; i < count; ++i) (void)leave(i);
  }
  void arrive(uint8_t route, int packets, Ecn ecn = Ecn::ect0) {
    scheduler.came(route);
    for (int i = 0; i < packets; ++i) reports.given(route).add(4096, ecn, moment(0s));
  }
  // An acknowledgement leaves. Returns the bytes that its report counts.
  int64_t leave(uint8_t route) {
    std::array<std::byte, LdcpCetph::size> bytes{};
    reports.given(route).write(bytes);
    return LdcpCetph::parse(bytes).ack_seq - ByteCount{};
  }

  RouteWindows windows{table};
  RouteReports reports{table};
  RouteScheduler scheduler{table, windows};
};

TEST_CASE("an acknowledgement reports the packets of the route that it leaves on, and no others") {
  Reporting with(3);
  with.arrive(0, 1);
  with.arrive(1, 10);
  CHECK(with.leave(1) == 74 * 4096);
  CHECK(with.leave(0) == 65 * 4096);
  CHECK(with.leave(2) == 64 * 4096);
}

TEST_CASE("an acknowledgement takes the route with the most packets that no report has counted") {
  Reporting with(3);
  with.arrive(0, 2);
  with.arrive(1, 3);
  with.arrive(2, 1);
  for (const uint8_t expected : std::array<uint8_t, 3>{1, 0, 2}) {
    CHECK(with.scheduler.for_answer() == expected);
    with.leave(expected);
  }
  CHECK(with.scheduler.for_answer() == 2);  // the route of the last packet
}

TEST_CASE("a route whose congestion has changed is reported first, if it is usable") {
  Reporting with(2);
  with.arrive(1, 1, Ecn::ce);
  with.arrive(0, 100);
  CHECK(with.reports.due());
  CHECK(with.scheduler.for_answer() == 1);
  with.table[1].usable = false;
  CHECK_FALSE(with.reports.due());
  CHECK(with.scheduler.for_answer() == 0);
  with.table[1].usable = true;
  CHECK(with.reports.due());
  with.leave(1);
  CHECK_FALSE(with.reports.due());
}

TEST_CASE("without reports, an acknowledgement takes the route of the last packet") {
  Reporting with(2, ReportForm::none);
  with.scheduler.came(0);
  CHECK(with.scheduler.for_answer() == 0);
  with.scheduler.came(1);
  CHECK(with.scheduler.for_answer() == 1);
  CHECK_FALSE(with.reports.due());
}

TEST_CASE("the sums of a route number last until the next channel, whatever its addresses") {
  Reporting with(2);
  with.reports.add(1);
  CHECK(with.leave(1) == 64 * 4096);
  with.reports.open(ReportForm::ldcp, ReportForm::none);
  CHECK(with.leave(1) == 0);
}

}  // namespace
}  // namespace urma::test
