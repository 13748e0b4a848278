// SPDX-License-Identifier: Apache-2.0
#include "transport/rtp/route_health.h"

#include <algorithm>

namespace urma::transport {

namespace {

uint8_t bit_of(uint8_t route) { return static_cast<uint8_t>(1u << route); }
void clear(uint8_t& bits, uint8_t route) { bits &= static_cast<uint8_t>(~bit_of(route)); }

}  // namespace

void RouteHealth::add(uint8_t route, bool announced, Time now) {
  Route& one = table_[route];
  one.added = announced;
  one.usable = one.known = one.reported_lost = one.hasty = false;
  one.lost_in_row = one.unanswered = 0;
  one.nonce = 0;
  one.asked_at = one.heard_at = {};
  one.ask_at = now;
  one.patience = least_patience;
  one.rtt = {};
}

void RouteHealth::remove(uint8_t route) {
  Route& one = table_[route];
  if (one.known) news_.removed |= bit_of(route);
  for (uint8_t* news : {&news_.lost, &news_.back, &news_.added}) clear(*news, route);
  one.usable = one.hasty = one.reported_lost = false;
  one.nonce = 0;
  one.ask_at = never;
}

// ---- packets

void RouteHealth::note_arrived(uint8_t route, Time sent, Time now) {
  Route& one = table_[route];
  if (!one.carried(sent)) return;
  one.lost_in_row = 0;
  one.heard_at = now_ = now;
}

// Single packets are lost by chance, many if a queue is full, and all if the peer is stalled. So
// the route is suspected only if several packets in a row are lost while other routes carry
// packets.
void RouteHealth::note_lost(uint8_t route, Time sent) {
  Route& one = table_[route];
  if (!one.carried(sent) || sent <= one.latest.sent() || !overtaken_on_others(route, sent)) return;
  if (one.lost_in_row < UINT8_MAX) ++one.lost_in_row;
  if (one.usable && one.lost_in_row >= losses_in_row) suspect(route, now_);
}

// Returns whether a packet that was sent later on another route has arrived.
bool RouteHealth::overtaken_on_others(uint8_t route, Time sent) const {
  for (uint8_t i = 0; i < table_.count(); ++i) {
    if (i != route && table_[i].usable && table_[i].latest.sent() > sent) return true;
  }
  return false;
}

void RouteHealth::forget_packets() {
  for (unsigned i = 0; i < table_.size(); ++i) table_[i].lost_in_row = 0;
}

// A deadline may be noticed after the channel has become idle; then it must not count.
bool RouteHealth::active(Time now) {
  if (now >= active_until_) active_until_ = {};
  return now < active_until_;
}

// ---- doubts and questions

void RouteHealth::doubt_all(Time now) {
  for (uint8_t i = 0; i < table_.count(); ++i) {
    Route& route = table_[i];
    if (!route.there) continue;
    route.usable = route.hasty = false;
    route.ask_at = now;
    route.patience = least_patience;
  }
  used(now);
}

void RouteHealth::question_all(Time now) {
  for (uint8_t i = 0; i < table_.count(); ++i) {
    Route& route = table_[i];
    if (!route.usable || route.hasty) continue;
    route.hasty = true;
    route.nonce = 0;
    route.unanswered = 0;
    route.ask_at = now;
  }
  used(now);
}

// From now on the route carries no data. It is asked immediately, and reported as lost when two
// questions have not been answered.
void RouteHealth::suspect(uint8_t route, Time now) {
  Route& one = table_[route];
  one.usable = one.hasty = false;
  one.patience = least_patience;
  one.ask_at = now;
  one.nonce = 0;
  one.unanswered = 0;
}

bool RouteHealth::others_heard_after(uint8_t route, Time when) const {
  for (uint8_t i = 0; i < table_.count(); ++i) {
    if (i != route && table_[i].usable && table_[i].heard_at > when) return true;
  }
  return false;
}

Time RouteHealth::next_deadline() const {
  Time next = never;
  for (uint8_t i = 0; i < table_.count(); ++i) next = std::min(next, table_[i].ask_at);
  return unless_idle(next);
}

std::optional<RouteHealth::Question> RouteHealth::question(Time now, uint64_t nonce) {
  if (!active(now)) return std::nullopt;
  for (uint8_t i = 0; i < table_.count(); ++i) {
    Route& route = table_[i];
    if (route.ask_at > now) continue;
    const bool unanswered = route.nonce != 0;
    if (unanswered && others_heard_after(i, route.asked_at) && route.unanswered < UINT8_MAX) {
      ++route.unanswered;
    }
    judge_unanswered(i, now);
    plan_next_question(route, unanswered, now);
    route.nonce = nonce;
    route.asked_at = now;
    return Question{i, nonce};
  }
  return std::nullopt;
}

void RouteHealth::judge_unanswered(uint8_t route, Time now) {
  Route& one = table_[route];
  if (one.hasty && one.usable && one.unanswered > 0) suspect(route, now);
  if (one.unanswered < questions_in_vain) return;
  if (one.usable) suspect(route, now);
  tell_lost(route);
}

void RouteHealth::plan_next_question(Route& route, bool unanswered, Time now) {
  if (route.usable) {
    route.ask_at = now + (route.hasty ? least_patience : unanswered ? doubt : calm);
    return;
  }
  route.ask_at = now + route.patience;
  const Duration most = route.known ? most_patience : most_patience_unknown;
  route.patience = std::min(2 * route.patience, most);
}

bool RouteHealth::answered(uint8_t route, uint64_t nonce, Time now) {
  if (route >= table_.count() || nonce == 0 || table_[route].nonce != nonce) return false;
  Route& one = table_[route];
  one.rtt = now - one.asked_at;
  if (PathTotals* const totals = table_.totals(route)) totals->rtt = one.rtt;
  prove(route, now);
  return true;
}

void RouteHealth::prove(uint8_t route, Time now) {
  Route& one = table_[route];
  if (!one.there) return;
  one.nonce = 0;
  one.unanswered = 0;
  one.hasty = false;
  one.heard_at = now;
  one.known = true;
  if (std::exchange(one.usable, true)) return;
  one.lost_in_row = 0;
  one.ask_at = now + calm;
  if (std::exchange(one.reported_lost, false)) news_.back |= bit_of(route);
  if (std::exchange(one.added, false)) news_.added |= bit_of(route);
  clear(news_.lost, route);
}

void RouteHealth::tell_lost(uint8_t route) {
  if (!table_[route].known || std::exchange(table_[route].reported_lost, true)) return;
  news_.lost |= bit_of(route);
  clear(news_.back, route);
}

}  // namespace urma::transport
