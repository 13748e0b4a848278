// SPDX-License-Identifier: Apache-2.0
#include "transport/rtp/route_windows.h"

#include <algorithm>
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
  one.in_vain = false;
  one.congested_until = {};
  if (kind_ != nullptr) open_window(route);
}

void RouteWindows::open(const congestion::ControllerKind& kind,
                        const congestion::Settings& settings) {
  kind_ = &kind;
  settings_ = settings;
  steering_ = {};
  for (uint8_t i = 0; i < table_.size(); ++i) {
    table_[i].congested_until = {};
    open_window(i);
  }
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

// The window of a controller that reads loss alone grows only while its route takes at most about
// twice as long as the fastest. Otherwise a queue on one route would delay the slices that went
// there behind all others. If all routes take long, the ends are the bottleneck.
void RouteWindows::update(Duration least_taken, const News& news, Time now) {
  if (kind_ == nullptr) return;  // there is no channel
  const bool by_loss = kind_->needs == congestion::Needs::nothing;
  const Duration most = 2 * least_taken + most_queueing;
  for (uint8_t i = 0; i < table_.size(); ++i) {
    Route& one = table_[i];
    congestion::Controller* const window = table_.window(i);
    const uint32_t arrived = std::exchange(one.arrived_bytes, 0);
    const uint32_t lost = std::exchange(one.lost_bytes, 0);
    const Duration sample = std::exchange(one.sample, {});
    const auto* const feedback = news.route == i ? news.feedback : nullptr;
    // If switches tell of their queues, a round trip without their answer would look like a queue
    // elsewhere. Besides, an acknowledgement on another route took that route's way back.
    const bool answered = has_answers(one.taken.form());
    const bool known = !answered || feedback != nullptr;
    if (window == nullptr) continue;
    if (std::exchange(one.in_vain, false)) window->handle(congestion::Spurious{.now = now});
    if (feedback != nullptr || (arrived > 0 && (!by_loss || one.took <= most))) {
      acknowledge(i,
                  {.now = now,
                   .rtt = one.took,
                   .bytes = arrived,
                   .inflight_bytes = one.inflight_bytes + arrived,
                   .sample = known ? sample : Duration{},
                   .least_rtt = answered ? Duration{} : one.least},
                  feedback, news.steers);
    }
    if (lost > 0) {
      window->handle(congestion::Lost{
          .now = now, .rtt = one.took, .bytes = lost, .timed_out = news.timed_out});
    }
  }
}

// While the channel steers traffic to other routes, the window of a congested route stays as it is.
void RouteWindows::acknowledge(uint8_t route, congestion::Acknowledged event,
                               const congestion::Feedback* feedback, bool steers) {
  Route& one = table_[route];
  congestion::Feedback told;
  if (feedback != nullptr) {
    told = *feedback;
    event.feedback = &told;
    const bool marked = told.marked_packets > 0 || told.marked_bytes > 0;
    steering_.note(marked, one.took, event.now);
    if (marked) one.congested_until = event.now + one.took;
  }
  if (event.now < one.congested_until && steers && !cuts(event.now)) {
    event.bytes = 0;
    event.sample = {};
    told.marked_packets = 0;
    told.marked_bytes = 0;
    told.increase = false;
    told.hint = 0;
  }
  table_.window(route)->handle(event);
}

bool RouteWindows::cuts(Time now) const {
  unsigned usable = 0;
  unsigned congested = 0;
  for (uint8_t i = 0; i < table_.count(); ++i) {
    if (!table_[i].usable) continue;
    ++usable;
    congested += now < table_[i].congested_until;
  }
  return steering_.cuts(usable, congested);
}

void RouteWindows::notified(uint8_t route, congestion::Notified event, bool steers) {
  if (kind_ == nullptr) return;
  Route& one = table_[route];
  event.rtt = one.took;
  one.congested_until = event.now + std::max(one.took, between_notifications);
  if (!steers || cuts(event.now)) table_.window(route)->handle(event);
}

congestion::Signal RouteWindows::depart(uint8_t route, congestion::Sent packet) {
  if (!paces()) return {};
  packet.inflight_bytes = load(route) - (packet.again ? 0 : packet.bytes);
  return table_.window(route)->request(packet);
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
