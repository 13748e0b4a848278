// SPDX-License-Identifier: Apache-2.0
#include "transport/rtp/routes.h"

#include <algorithm>

namespace urma::transport {

namespace {

// SentWindow records the time of sending with a resolution of 256 ns.
constexpr Duration sent_exact{256};

}  // namespace

Routes::Routes(const PathList& ours, const PathList& theirs, Time now, Slab<RouteTable::Four>* more)
    : table_(more) {
  lead(ours, theirs, false, now);
}

void Routes::lead(const PathList& ours, const PathList& theirs, bool announced, Time now) {
  // Without a channel there are no packets of an earlier route.
  const Time begun = announced ? now + sent_exact : Time{};
  const RouteTable::Changes changes = table_.lead(ours, theirs, begun, now);
  for (uint8_t i = 0; i < most_paths; ++i) {
    if ((changes.removed >> i & 1) != 0) health_.remove(i);
    if ((changes.added >> i & 1) == 0) continue;
    health_.add(i, announced, now);
    delays_.add(i);
    windows_.add(i);
    reports_.add(i);
  }
  health_.used(now);
}

void Routes::start_report(uint64_t nonce, Time now) {
  report_.start(nonce, now);
  health_.used(now);
}

std::optional<uint8_t> Routes::due_report(Time now) {
  if (now < report_.due_at() || !health_.active(now)) return std::nullopt;
  return scheduler_.usable_way(report_.next_try(now));
}

// In an idle channel nothing is due until a packet is sent or received.
Time Routes::next_deadline() const {
  return std::min(health_.next_deadline(), health_.unless_idle(report_.due_at()));
}

void Routes::came(uint8_t route, Time now) {
  scheduler_.came(route);
  health_.used(now);
}

void Routes::arrived(uint8_t route, uint32_t bytes, Time sent, Time now) {
  windows_.arrived(route, bytes, sent);
  health_.note_arrived(route, sent, now);
}

void Routes::lose(uint8_t route, uint32_t bytes, Time sent, bool probe) {
  windows_.lost(route, bytes, sent, probe);
  if (!probe) health_.note_lost(route, sent);
}

void Routes::tell_windows(bool timed_out, Time now, const congestion::Feedback* feedback) {
  windows_.update(delays_.least_taken(),
                  {.timed_out = timed_out,
                   .feedback = feedback,
                   .route = scheduler_.latest(),
                   .steers = !scheduler_.one_at_a_time()},
                  now);
}

void Routes::notified(const congestion::Notified& event) {
  windows_.notified(scheduler_.latest(), event, !scheduler_.one_at_a_time());
}

void Routes::forget_packets() {
  health_.forget_packets();
  delays_.forget_packets();
  windows_.forget_packets();
}

size_t Routes::view(const ChannelView& whole, const PathList& ours,
                    std::span<ChannelView> out) const {
  size_t used = 0;
  for (uint8_t i = 0; i < count(); ++i) {
    const Route& route = table_[i];
    if (!route.there) continue;
    if (used == out.size()) return 0;
    ChannelView& view = out[used++] = whole;
    view.from = ours.endpoints[route.local];
    view.to = route.to;
    view.path = i;
    if (!route.usable) view.state = ChannelView::State::lost;
    if (route.took > Duration{}) view.rtt = route.took;
    if (route.least > Duration{}) view.least_rtt = route.least;
    view.inflight_bytes = route.inflight_bytes;
    view.sent = route.sent;
    view.lost = route.lost;
    windows_.view(i, view);
  }
  return used;
}

}  // namespace urma::transport
