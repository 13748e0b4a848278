// SPDX-License-Identifier: Apache-2.0
#include "transport/rtp/channel_reports.h"

#include "tests/catch.h"
#include "tests/unit/transport/route_parts.h"

namespace urma::test {
namespace {

using transport::ChannelReports;
using transport::ReportsGiven;
using transport::ReportsTaken;

TEST_CASE("channel reports: a single path has the sums of the channel") {
  const ChannelReports reports(nullptr);
  ReportsGiven given(ReportForm::ldcp);
  ReportsTaken taken(ReportForm::ldcp);
  CHECK(&reports.given(given) == &given);
  CHECK(&reports.given_on(0, given) == &given);
  CHECK(&reports.taken(taken) == &taken);
  CHECK_FALSE(reports.due(given));
  given.add(4096, Ecn::ce, moment(0s));
  CHECK(reports.due(given));
}

TEST_CASE("channel reports: of several routes, each has sums of its own") {
  transport::Routes routes(addresses(2, 1), addresses(2, 2), moment(0s));
  ask(routes, 0ms, 10ms);
  routes.reports().open(ReportForm::ldcp, ReportForm::ldcp);
  const ChannelReports reports(&routes);
  ReportsGiven unused_given;
  ReportsTaken unused_taken;
  for (const uint8_t route : {uint8_t{0}, uint8_t{1}}) {
    routes.came(route, moment(11ms));
    CHECK(&reports.given(unused_given) == &routes.reports().given(route));
    CHECK(&reports.taken(unused_taken) == &routes.reports().taken(route));
    CHECK(&reports.given_on(1 - route, unused_given) ==
          &routes.reports().given(static_cast<uint8_t>(1 - route)));
  }
  CHECK_FALSE(reports.due(unused_given));
  reports.given_on(0, unused_given).add(4096, Ecn::ce, moment(12ms));
  CHECK(reports.due(unused_given));
}

}  // namespace
}  // namespace urma::test
