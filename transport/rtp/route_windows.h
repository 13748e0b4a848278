#pragma once

#include "congestion/controller.h"
#include "transport/rtp/route_table.h"

namespace urma::transport {

// Counts how much is in flight on each route, and decides how much more may be sent there. Each
// route has a congestion window of its own, so that a route with losses or delays does not slow the
// others. It owns the congestion controllers, and does not know which routes are usable.
class RouteWindows {
 public:
  // There is room everywhere until `open`.
  explicit RouteWindows(RouteTable& table) : table_(table) {}
  ~RouteWindows();
  RouteWindows(const RouteWindows&) = delete;
  RouteWindows& operator=(const RouteWindows&) = delete;

  // Called when a new route gets this number. The route starts with a new window; bytes in flight
  // on an earlier route with this number stay counted until they arrive or are lost.
  void add(uint8_t route);
  // For a new channel: all routes start with new windows.
  void open(const congestion::ControllerKind& kind, const congestion::Settings& settings);
  // Updates the windows with what has arrived and what was lost since the last call. `least_taken`:
  // how long packets take on the fastest usable route.
  void update(Duration least_taken, bool timed_out, Time now);
  // A route with nothing in flight has room for any packet.
  bool has_room(uint8_t route, uint32_t bytes) const;
  // Returns the bytes that are in flight on the route, or about to be.
  uint64_t load(uint8_t route) const {
    return table_[route].inflight_bytes + table_[route].planned_bytes;
  }

  // While a burst is put together, lost packets count on their new route before they are sent.
  void begin_plan() {
    for (unsigned i = 0; i < table_.size(); ++i) table_[i].planned_bytes = 0;
  }
  void plan(uint8_t route, uint32_t bytes) { table_[route].planned_bytes += bytes; }

  // A data packet was sent.
  void left(uint8_t route, uint32_t bytes) {
    table_[route].inflight_bytes += bytes;
    ++table_[route].sent;
    if (PathTotals* const totals = table_.totals(route)) ++totals->sent;
  }
  // The size of a packet in flight differs from the size that was counted by `change`.
  void resized(uint8_t route, int64_t change) {
    table_[route].inflight_bytes += static_cast<uint64_t>(change);
  }
  // A packet sent at `sent` is not in flight any more. `bytes` is 0 if it had been believed lost.
  void arrived(uint8_t route, uint32_t bytes, Time sent);
  // A packet is believed lost. `probe`: it is only sent again as a question, which does not shrink
  // the window.
  void lost(uint8_t route, uint32_t bytes, Time sent, bool probe);
  void forget_packets();

 private:
  // How much longer than twice the time of the fastest route a route may take before its window
  // stops growing.
  static constexpr Duration most_queueing = std::chrono::milliseconds(1);

  void open_window(uint8_t route);

  RouteTable& table_;
  const congestion::ControllerKind* kind_ = nullptr;  // null until `open`
  congestion::Settings settings_;
};

}  // namespace urma::transport
