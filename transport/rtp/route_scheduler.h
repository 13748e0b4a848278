// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "transport/rtp/route_windows.h"

namespace urma::transport {

// Decides which route the next packet, acknowledgement or message takes. It reads the table and the
// windows, and changes neither.
class RouteScheduler {
 public:
  RouteScheduler(const RouteTable& table, const RouteWindows& windows)
      : table_(table), windows_(windows) {}

  // In modes that take overtaking for loss, all packets take one route: the first usable one.
  void use_one_at_a_time(bool one) { one_at_a_time_ = one; }
  bool one_at_a_time() const { return one_at_a_time_; }
  // Returns whether a channel that uses one route at a time has to wait before it sends new
  // packets: its route has changed, and new packets would overtake those in flight on the old one.
  bool changes_over() const;

  // Returns whether a packet of this size may be sent on at least one route. `now`: see
  // RouteWindows::fit.
  bool any_room(uint32_t bytes, Time now = never) const;
  // Returns whether any packet may leave now, if its window permits it.
  bool may_depart(Time now) const { return now >= departure(0); }
  // Returns when the next packet may leave on a route that has room for it: if `bytes` is 0, on any
  // route.
  Time departure(uint32_t bytes) const;
  // Returns the route for the next packet or slice: of the usable routes with room, the one with
  // the fewest bytes in flight; a congested one only if no other has room.
  uint8_t pick(uint32_t bytes, Time now = never);
  // A packet arrived over this route.
  void came(uint8_t route) { latest_ = route; }
  uint8_t latest() const { return latest_; }
  // Returns the route for an acknowledgement: a usable one whose report has to leave now, else the
  // one with the most packets that were not reported. If there are no reports, it is the route of
  // the last packet that arrived, if that is usable.
  uint8_t for_answer() const;
  // Returns the route for the n-th try of a message that has to reach the peer: usable routes in
  // turn, then routes that were usable once. Each fourth try takes a route that never was usable;
  // only each fourth, because its address may belong to a third party.
  uint8_t way(unsigned number) const;
  // Returns the route for the n-th try of a message on a channel: only usable routes, in turn, if
  // there are any.
  uint8_t usable_way(unsigned number) const;

 private:
  uint8_t first_usable() const;
  uint8_t fallback(unsigned number) const;
  // Calls `visit` with the number of each route that may carry a packet, until it returns true.
  template <class Visit>
  bool any_candidate(const Visit& visit) const;

  const RouteTable& table_;
  const RouteWindows& windows_;
  uint8_t next_ = 0;
  uint8_t latest_ = 0;
  bool one_at_a_time_ = false;
};

}  // namespace urma::transport
