// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "congestion/controller.h"
#include "transport/rtp/controller_view.h"
#include "transport/rtp/route_table.h"
#include "transport/rtp/steering.h"

namespace urma::transport {

// Counts how much is in flight on each route, and decides how much more may be sent there, and
// when. Each route has a congestion controller of its own, so that a route with losses or delays
// does not slow the others. It owns the controllers, and passes them what concerns their route.
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
  // The news since the last call of `update`, besides what has arrived and what was lost.
  struct News {
    bool timed_out = false;
    // The report of an acknowledgement, or null, and the route that it is about.
    const congestion::Feedback* feedback = nullptr;
    uint8_t route = 0;
    bool steers = true;  // the channel can send over other routes instead
  };
  // Updates the windows. `least_taken`: how long packets take on the fastest usable route.
  void update(Duration least_taken, const News& news, Time now);
  // A CNP is about this route. `steers`: as above.
  void notified(uint8_t route, congestion::Notified event, bool steers);
  // A route with nothing in flight has room for any packet.
  bool has_room(uint8_t route, uint32_t bytes) const;

  // Returns whether packets may have to wait for their departure.
  bool paces() const { return kind_ != nullptr && kind_->paces; }
  // Returns when the next packet may leave on the route; in the past if the controllers do not
  // pace.
  Time departure(uint8_t route) const {
    const congestion::Controller* const window = std::as_const(table_).window(route);
    return paces() && window != nullptr ? window->allowance({}).not_before : Time{};
  }
  // How well a packet of this size would do on a route now: `none`: it has to wait for its
  // departure; `departs`: the window is full; `room`: the route is congested, so that others are
  // better. With `never` as the time, packets do not wait.
  enum class Fit : uint8_t { none, departs, room, good };
  Fit fit(uint8_t route, uint32_t bytes, Time now) const {
    if (now < departure(route)) return Fit::none;
    if (!has_room(route, bytes)) return Fit::departs;
    return now < table_[route].congested_until ? Fit::room : Fit::good;
  }
  // A packet is about to leave on the route. A new packet is counted as in flight already. Returns
  // what it asks switches for.
  congestion::Signal depart(uint8_t route, congestion::Sent packet);
  void correct(uint8_t route, const congestion::Written& packet) {
    if (paces()) table_.window(route)->correct(packet);
  }
  // Writes the route's window and pace.
  void view(uint8_t route, ChannelView& out) const {
    const congestion::Controller* const window = std::as_const(table_).window(route);
    if (window != nullptr) view_controller(*window, paces(), out);
  }
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
  // A packet that was believed lost has arrived.
  void note_in_vain(uint8_t route) { table_[route].in_vain = true; }
  void forget_packets();

 private:
  // How much longer than twice the time of the fastest route a route may take before its window
  // stops growing.
  static constexpr Duration most_queueing = std::chrono::milliseconds(1);
  // A receiver sends CNPs about a route that stays congested at least this often.
  static constexpr Duration between_notifications = std::chrono::microseconds(100);

  void open_window(uint8_t route);
  void acknowledge(uint8_t route, congestion::Acknowledged event,
                   const congestion::Feedback* feedback, bool steers);
  bool cuts(Time now) const;

  RouteTable& table_;
  Steering steering_;
  const congestion::ControllerKind* kind_ = nullptr;  // null until `open`
  congestion::Settings settings_;
};

}  // namespace urma::transport
