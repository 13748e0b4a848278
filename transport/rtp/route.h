// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "transport/rtp/loss.h"
#include "transport/rtp/reports.h"
#include "urma/core/endpoint.h"
#include "urma/core/path.h"
#include "urma/core/time.h"

namespace urma::transport {

// One route of a channel: all that is known of one pair of addresses, ours and the peer's. All
// parts of `Routes` may read everything here; each field is written only by the part that is named
// above it. There is a `Route` for each path of each peer, so the fields are ordered to leave no
// gaps.
struct Route {
  // RouteWindows
  uint64_t inflight_bytes = 0;  // includes those of earlier routes with this number
  uint64_t sent = 0;            // data packets, each copy, since the route was added
  uint64_t lost = 0;
  Time congested_until{};      // a report of congestion was received within a round trip
  uint32_t arrived_bytes = 0;  // since the congestion window was last updated
  uint32_t lost_bytes = 0;     // likewise
  uint32_t planned_bytes = 0;  // lost packets that are about to be sent again here

  // RouteTable
  Endpoint to;
  uint8_t local = 0;   // the number of our address
  bool there = false;  // not removed; routes that never existed are not there either

  // RouteHealth
  bool added = false;   // after the channel was made, and not reported as added yet
  bool usable = false;  // the peer has answered here, and nothing has raised a doubt since
  bool known = false;   // has been usable before
  bool reported_lost = false;
  bool hasty = false;       // one unanswered question is enough to suspect it
  uint8_t lost_in_row = 0;  // packets sent after the last one that arrived
  uint8_t unanswered = 0;   // questions

  // RouteWindows: a packet that was believed lost has arrived, since the window was last updated
  bool in_vain = false;

  // RouteReports
  ReportsGiven given;
  ReportsTaken taken;

  // RouteHealth
  uint64_t nonce = 0;  // of the open question; 0 if none is open
  Time asked_at{};
  Time ask_at = never;
  Time heard_at{};      // when we last learnt that a packet sent here had arrived
  Duration patience{};  // until the next question, while it is not usable
  Duration rtt{};       // of the last question that was answered

  // RouteDelays
  LatestArrival latest;
  Time overtaken_before;  // valid after `judge`, as is `later`
  Duration later{};
  Duration took{};    // from sending to acknowledgement, smoothed; zero until measured
  Duration least{};   // the least of these times; zero until measured
  Duration sample{};  // the latest of these times; RouteWindows resets it when it has used it

  // RouteTable: packets that were sent before `begun` took an earlier route with the same number.
  Time begun{};
  // Returns whether a packet that was sent at `sent_at` took this route.
  bool carried(Time sent_at) const { return sent_at >= begun; }
};

}  // namespace urma::transport
