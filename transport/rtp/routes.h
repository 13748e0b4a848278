// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>

#include "transport/channel_view.h"
#include "transport/rtp/address_report.h"
#include "transport/rtp/route_delays.h"
#include "transport/rtp/route_health.h"
#include "transport/rtp/route_reports.h"
#include "transport/rtp/route_scheduler.h"
#include "transport/rtp/route_table.h"
#include "transport/rtp/route_windows.h"

namespace urma::transport {

// The routes of a channel: one per pair of addresses. A route that fails loses packets, which are
// sent again on others, but never the channel: packet numbers, window and slices belong to the
// channel (docs/protocol.md, Paths).
//
// This class owns the parts and does what concerns several of them; for all else callers use the
// part that knows the answer. `PeerPaths` owns it, and it outlives the channels to its peer. It
// sends nothing. Only the thread that runs the engine calls it.
class Routes {
 public:
  // `ours`, `theirs`: at least one address each. A question is due on all routes immediately.
  // `more`: see RouteTable.
  Routes(const PathList& ours, const PathList& theirs, Time now,
         Slab<RouteTable::Four>* more = nullptr);
  Routes(const Routes&) = delete;
  Routes& operator=(const Routes&) = delete;

  const RouteTable& table() const { return table_; }
  RouteHealth& health() { return health_; }
  RouteDelays& delays() { return delays_; }
  RouteWindows& windows() { return windows_; }
  const RouteWindows& windows() const { return windows_; }
  RouteReports& reports() { return reports_; }
  RouteScheduler& scheduler() { return scheduler_; }
  const RouteScheduler& scheduler() const { return scheduler_; }
  AddressReport& report() { return report_; }
  // As in `table()`.
  uint8_t count() const { return table_.count(); }
  const Route& operator[](unsigned number) const { return table_[number]; }

  // Sets where the totals over all peers are kept.
  void count_in(AllPathTotals& totals) { table_.count_in(totals); }
  // Replaces both lists of addresses. Routes whose addresses stay keep all that is known of them.
  // Packets in flight on a removed route stay counted there until they arrive or are lost; this
  // then has no influence on a new route with the same number. `announced`: there is a channel, so
  // the change is reported.
  void lead(const PathList& ours, const PathList& theirs, bool announced, Time now);

  // Begins to report our addresses to the peer.
  void start_report(uint64_t nonce, Time now);
  // Returns the route on which to report our addresses now, another one each time, or nothing if no
  // report is due.
  std::optional<uint8_t> due_report(Time now);
  // Returns when the next question or report is due.
  Time next_deadline() const;

  // A data packet over this route came from the peer.
  void came(uint8_t route, Time now);
  // A packet is not in flight any more; see RouteWindows. `sent`: when its last copy left.
  void arrived(uint8_t route, uint32_t bytes, Time sent, Time now);
  void lose(uint8_t route, uint32_t bytes, Time sent, bool probe = false);
  // Updates the congestion windows with the arrivals and losses since the last call. `feedback`:
  // the report of an acknowledgement that has just arrived, on the route that it is about, or null.
  void tell_windows(bool timed_out, Time now, const congestion::Feedback* feedback = nullptr);
  // A CNP has arrived on the route that it is about.
  void notified(const congestion::Notified& event);
  // The channel that the packets in flight belonged to was destroyed.
  void forget_packets();

  // Describes each route; see PacketChannel::view. `whole`: what is common to them.
  [[gnu::cold]] size_t view(const ChannelView& whole, const PathList& ours,
                            std::span<ChannelView> out) const;

 private:
  RouteTable table_;
  RouteHealth health_{table_};
  RouteDelays delays_{table_};
  RouteWindows windows_{table_};
  RouteReports reports_{table_};
  RouteScheduler scheduler_{table_, windows_};
  AddressReport report_;
};

}  // namespace urma::transport
