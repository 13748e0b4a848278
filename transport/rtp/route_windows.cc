#include "transport/rtp/route_windows.h"

#include <utility>

namespace urma::transport {

RouteWindows::~RouteWindows() {
  for (unsigned i = 0; i < table_.size(); ++i) {
    if (table_.window(i) != nullptr) table_.window(i)->~Controller();
  }
}

void RouteWindows::add(uint8_t route) {
  Route& one = table_[route];
  one.arrived_bytes = one.lost_bytes = one.planned_bytes = 0;
  one.sent = one.lost = 0;
  if (kind_ != nullptr) open_window(route);
}

void RouteWindows::open(const congestion::ControllerKind& kind,
                        const congestion::Settings& settings) {
  kind_ = &kind;
  settings_ = settings;
  for (uint8_t i = 0; i < table_.size(); ++i) open_window(i);
}

void RouteWindows::open_window(uint8_t route) {
  congestion::Controller*& window = table_.window(route);
  if (window != nullptr) window->~Controller();
  window = kind_->make(table_.storage(route), settings_);
}

bool RouteWindows::has_room(uint8_t route, uint32_t bytes) const {
  const uint64_t loaded = load(route);
  const congestion::Controller* const window = std::as_const(table_).window(route);
  return window == nullptr || loaded == 0 || loaded + bytes <= window->window_bytes();
}

// A window grows only while its route takes at most about twice as long as the fastest. Otherwise a
// queue on one route would delay the slices that went there behind all others. If all routes take
// long, the ends are the bottleneck.
void RouteWindows::update(Duration least_taken, bool timed_out, Time now) {
  const Duration most = 2 * least_taken + most_queueing;
  for (unsigned i = 0; i < table_.size(); ++i) {
    Route& one = table_[i];
    congestion::Controller* const window = table_.window(i);
    const uint32_t arrived = std::exchange(one.arrived_bytes, 0);
    const uint32_t lost = std::exchange(one.lost_bytes, 0);
    if (window == nullptr) continue;
    if (arrived > 0 && one.took <= most) {
      window->handle(congestion::Acknowledged{.now = now,
                                              .rtt = one.took,
                                              .bytes = arrived,
                                              .inflight_bytes = one.inflight_bytes + arrived});
    }
    if (lost > 0) {
      window->handle(
          congestion::Lost{.now = now, .rtt = one.took, .bytes = lost, .timed_out = timed_out});
    }
  }
}

void RouteWindows::arrived(uint8_t route, uint32_t bytes, Time sent) {
  Route& one = table_[route];
  one.inflight_bytes -= bytes;
  if (one.carried(sent)) one.arrived_bytes += bytes;
}

void RouteWindows::lost(uint8_t route, uint32_t bytes, Time sent, bool probe) {
  Route& one = table_[route];
  one.inflight_bytes -= bytes;
  if (!one.carried(sent)) return;
  ++one.lost;
  if (PathTotals* const totals = table_.totals(route)) ++totals->lost;
  if (!probe) one.lost_bytes += bytes;
}

void RouteWindows::forget_packets() {
  for (unsigned i = 0; i < table_.size(); ++i) {
    Route& route = table_[i];
    route.inflight_bytes = 0;
    route.arrived_bytes = route.lost_bytes = route.planned_bytes = 0;
  }
}

}  // namespace urma::transport
