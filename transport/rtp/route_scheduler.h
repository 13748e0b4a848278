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

  // Returns whether a packet of this size may be sent on at least one route.
  bool any_room(uint32_t bytes) const;
  // Returns the route for the next packet or slice: of the usable routes with room, the one with
  // the fewest bytes in flight.
  uint8_t pick(uint32_t bytes);
  // A packet arrived over this route.
  void came(uint8_t route) { latest_ = route; }
  // Returns the route for an acknowledgement: the route of the last packet that arrived, if it is
  // usable.
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

  const RouteTable& table_;
  const RouteWindows& windows_;
  uint8_t next_ = 0;
  uint8_t latest_ = 0;
  bool one_at_a_time_ = false;
};

}  // namespace urma::transport
