// SPDX-License-Identifier: Apache-2.0
#include "transport/rtp/route_delays.h"

#include <algorithm>

namespace urma::transport {

void RouteDelays::add(uint8_t route) {
  Route& one = table_[route];
  one.latest = {};
  one.overtaken_before = {};
  one.later = one.took = one.least = one.sample = {};
}

void RouteDelays::note_arrival(uint8_t route, Time sent, Time now) {
  Route& one = table_[route];
  if (!one.carried(sent)) return;
  const Duration sample = now - sent;
  if (sent >= one.latest.sent()) one.sample = sample;
  one.latest.note(sent, now);
  one.least = one.least == Duration{} ? sample : std::min(one.least, sample);
  one.took = one.took == Duration{} ? sample : one.took + (sample - one.took) / 8;
}

void RouteDelays::forget_packets() {
  for (unsigned i = 0; i < table_.size(); ++i) table_[i].latest = {};
}

void RouteDelays::judge(Duration tolerance, Time now) {
  const Duration least = least_taken();
  for (unsigned i = 0; i < table_.size(); ++i) {
    Route& route = table_[i];
    route.overtaken_before = route.latest.evidence({}, tolerance, 0, now).once_before;
    route.later = 2 * std::max(route.took - least, Duration{});
  }
}

Duration RouteDelays::least_taken() const {
  Duration least{};
  for (unsigned i = 0; i < table_.size(); ++i) {
    const Route& route = table_[i];
    if (!route.usable || route.took == Duration{}) continue;
    least = least == Duration{} ? route.took : std::min(least, route.took);
  }
  return least;
}

}  // namespace urma::transport
