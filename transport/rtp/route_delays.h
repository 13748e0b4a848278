// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "transport/rtp/route_table.h"

namespace urma::transport {

// Measures how long packets take on each route, and finds packets that have been overtaken by later
// ones of the same route. Packets of different routes overtake each other without any loss, so in
// mode rack each packet is judged by the arrivals on its own route. Loss itself is found by
// `SentWindow`.
class RouteDelays {
 public:
  explicit RouteDelays(RouteTable& table) : table_(table) {}

  // Called when a new route gets this number.
  void add(uint8_t route);
  // A packet is known to have arrived. `sent` is when its first copy left, or the copy that was
  // certainly acknowledged.
  void note_arrival(uint8_t route, Time sent, Time now);
  void forget_packets();

  // Computes `overtaken_before` and `later` for all routes, once before the packets in flight are
  // looked at. `tolerance`: how much later than its successors a packet may arrive.
  void judge(Duration tolerance, Time now);
  // Returns the time before which all packets that were sent on the route have been overtaken.
  Time overtaken_before(uint8_t route) const { return table_[route].overtaken_before; }
  // Returns how much later than on the fastest route a packet may arrive: twice the difference
  // measured.
  Duration later(uint8_t route) const { return table_[route].later; }
  // Returns when the packet counts as overtaken, if it does not arrive before; `never` if no packet
  // that was sent later has arrived.
  Time patience(uint8_t route, Time sent, Duration tolerance) const {
    return table_[route].latest.patience(sent, tolerance);
  }
  // Returns how long packets take on the fastest usable route; zero if none has been measured.
  Duration least_taken() const;

 private:
  RouteTable& table_;
};

}  // namespace urma::transport
