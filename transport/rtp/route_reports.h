// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "transport/rtp/route_table.h"

namespace urma::transport {

// The reports of congestion of a channel with several routes. A report does not say which route its
// sums are of, so there are sums for each route, and an acknowledgement reports only the packets of
// the route on which it leaves. The sums belong to a route's number and last as long as the
// channel: the two ends do not replace a route at the same time, and sums are compared only with
// earlier ones.
class RouteReports {
 public:
  explicit RouteReports(RouteTable& table) : table_(table) {}

  // For a new channel: all sums begin anew, in these forms.
  void open(ReportForm gives, ReportForm takes) {
    gives_ = gives;
    takes_ = takes;
    for (unsigned i = 0; i < table_.size(); ++i) {
      table_[i].given = ReportsGiven(gives);
      table_[i].taken = ReportsTaken(takes);
    }
  }
  // Called when a new route gets this number.
  void add(uint8_t route) {
    Route& one = table_[route];
    if (one.given.form() != gives_) one.given = ReportsGiven(gives_);
    if (one.taken.form() != takes_) one.taken = ReportsTaken(takes_);
  }

  ReportsGiven& given(uint8_t route) { return table_[route].given; }
  ReportsTaken& taken(uint8_t route) { return table_[route].taken; }
  // Returns whether a usable route has a report that has to leave now.
  bool due() const {
    for (uint8_t i = 0; i < table_.count(); ++i) {
      if (table_[i].usable && table_[i].given.due()) return true;
    }
    return false;
  }

 private:
  RouteTable& table_;
  ReportForm gives_ = ReportForm::none;
  ReportForm takes_ = ReportForm::none;
};

}  // namespace urma::transport
