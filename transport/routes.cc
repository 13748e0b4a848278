#include "transport/routes.h"

#include <algorithm>
#include <utility>

namespace urma::transport {

Routes::Routes(std::span<const Endpoint> ours, std::span<const Endpoint> theirs, Time now)
    : count_(static_cast<uint8_t>(
          std::min<size_t>(std::max(ours.size(), theirs.size()), most_paths))) {
  for (uint8_t i = 0; i < count_; ++i) {
    routes_[i].local = static_cast<uint8_t>(i % ours.size());
    routes_[i].to = theirs[i % theirs.size()];
    routes_[i].ask_at = now;
    routes_[i].patience = least_patience;
  }
  used(now);
}

std::optional<uint8_t> Routes::find(uint8_t local, const Endpoint& from) const {
  for (uint8_t i = 0; i < count_; ++i) {
    if (routes_[i].local == local && routes_[i].to == from) return i;
  }
  return std::nullopt;
}

bool Routes::leads_to(const Endpoint& to) const {
  for (const Route& route : std::span(routes_).first(count_)) {
    if (route.to == to) return true;
  }
  return false;
}

uint8_t Routes::pick() {
  uint8_t best = next_;
  for (uint8_t i = 0; i < count_; ++i) {
    const auto at = static_cast<uint8_t>((next_ + i) % count_);
    const Route& route = routes_[at];
    const Route& chosen = routes_[best];
    const bool less = route.inflight_bytes < chosen.inflight_bytes;
    if (route.usable && (!chosen.usable || less)) best = at;
  }
  next_ = static_cast<uint8_t>((best + 1) % count_);
  return best;
}

uint8_t Routes::for_answer() const {
  if (routes_[latest_].usable) return latest_;
  for (uint8_t i = 0; i < count_; ++i) {
    if (routes_[i].usable) return i;
  }
  return latest_;
}

// ---- packets

void Routes::arrived(uint8_t route, uint32_t bytes_in_flight, Time now) {
  Route& one = routes_[route];
  one.inflight_bytes -= bytes_in_flight;
  one.lost_in_row = 0;
  one.heard_at = now_ = now;
}

// Chance takes some packets here and there, a full queue takes many, and a peer that stands still
// takes all of them.
void Routes::lose(uint8_t route, uint32_t bytes, Time sent) {
  Route& one = routes_[route];
  one.inflight_bytes -= bytes;
  ++one.lost;
  if (sent <= one.latest.sent() || !overtaken_on_others(route, sent)) return;
  if (one.lost_in_row < UINT8_MAX) ++one.lost_in_row;
  if (one.usable && one.lost_in_row >= losses_in_row) suspect(route, now_);
}

// Whether something has arrived that was sent later, elsewhere.
bool Routes::overtaken_on_others(uint8_t route, Time sent) const {
  for (uint8_t i = 0; i < count_; ++i) {
    if (i != route && routes_[i].usable && routes_[i].latest.sent() > sent) return true;
  }
  return false;
}

void Routes::judge(Duration tolerance, Time now) {
  for (Route& route : std::span(routes_).first(count_)) {
    route.overtaken_before = route.latest.evidence({}, tolerance, 0, now).once_before;
  }
}

void Routes::forget_packets() {
  for (Route& route : routes_) {
    route.latest = {};
    route.inflight_bytes = 0;
    route.lost_in_row = 0;
  }
}

// ---- which are there

void Routes::doubt_all(Time now) {
  for (Route& route : std::span(routes_).first(count_)) {
    route.usable = false;
    route.ask_at = now;
    route.patience = least_patience;
  }
  used(now);
}

bool Routes::others_heard_after(uint8_t route, Time when) const {
  for (uint8_t i = 0; i < count_; ++i) {
    if (i != route && routes_[i].usable && routes_[i].heard_at > when) return true;
  }
  return false;
}

// It is asked at once, and said to be lost when that is in vain.
void Routes::suspect(uint8_t route, Time now) {
  Route& one = routes_[route];
  one.usable = false;
  one.patience = least_patience;
  one.ask_at = now;
  one.nonce = 0;
  one.unanswered = 0;
}

void Routes::tell_lost(uint8_t route) {
  if (!routes_[route].known || std::exchange(routes_[route].told_lost, true)) return;
  const auto bit = static_cast<uint8_t>(1u << route);
  news_.lost |= bit;
  news_.back &= static_cast<uint8_t>(~bit);
}

Time Routes::next_deadline() const {
  Time next = never;
  for (const Route& route : std::span(routes_).first(count_)) next = std::min(next, route.ask_at);
  // What is due later than that waits until something is sent or comes.
  return next < active_until_ ? next : never;
}

std::optional<Routes::Question> Routes::question(Time now, uint64_t nonce) {
  if (now >= active_until_) return std::nullopt;
  for (uint8_t i = 0; i < count_; ++i) {
    Route& route = routes_[i];
    if (route.ask_at > now) continue;
    const bool in_vain = route.nonce != 0;
    if (in_vain && others_heard_after(i, route.asked_at) && route.unanswered < UINT8_MAX) {
      ++route.unanswered;
    }
    if (route.unanswered >= questions_in_vain) {
      if (route.usable) suspect(i, now);
      tell_lost(i);
    }
    if (route.usable) {
      route.ask_at = now + (in_vain ? doubt : calm);
    } else {
      route.ask_at = now + route.patience;
      route.patience = std::min(2 * route.patience, most_patience);
    }
    route.nonce = nonce;
    route.asked_at = now;
    return Question{i, nonce};
  }
  return std::nullopt;
}

void Routes::answered(uint8_t route, uint64_t nonce, Time now) {
  if (route >= count_ || nonce == 0 || routes_[route].nonce != nonce) return;
  routes_[route].rtt = now - routes_[route].asked_at;
  prove(route, now);
}

void Routes::prove(uint8_t route, Time now) {
  Route& one = routes_[route];
  one.nonce = 0;
  one.unanswered = 0;
  one.heard_at = now;
  one.known = true;
  if (std::exchange(one.usable, true)) return;
  one.lost_in_row = 0;
  one.ask_at = now + calm;
  const auto bit = static_cast<uint8_t>(1u << route);
  if (std::exchange(one.told_lost, false)) news_.back |= bit;
  news_.lost &= static_cast<uint8_t>(~bit);
}

}  // namespace urma::transport
