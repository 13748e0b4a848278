#include "transport/rtp/routes.h"

#include <algorithm>
#include <utility>

namespace urma::transport {

namespace {

struct Pair {
  bool there = false;
  uint8_t local = 0;
  Endpoint to{};
};
using Pairs = std::array<Pair, most_paths>;

// When a packet left is known to 256 ns.
constexpr Duration sent_exact{256};

// The n-th of ours with the n-th of theirs; who has fewer begins again with the first.
Pairs pairs_of(const PathList& ours, const PathList& theirs) {
  Pairs pairs;
  bool any = false;
  for (unsigned i = 0; i < std::max(ours.count, theirs.count); ++i) {
    const unsigned here = i % ours.count;
    const unsigned there = i % theirs.count;
    if (!ours.there(here) || !theirs.there(there)) continue;
    pairs[i] = {true, static_cast<uint8_t>(here), theirs.endpoints[there]};
    any = true;
  }
  // No number is left that both have: then the first ones.
  if (!any) pairs[0] = {true, ours.first(), theirs.endpoints[theirs.first()]};
  return pairs;
}

}  // namespace

const Routes::Route Routes::Places::nowhere{};

Routes::Routes(const PathList& ours, const PathList& theirs, Time now, Slab<Four>* more)
    : routes_(more) {
  lead(ours, theirs, false, now);
}

void Routes::lead(const PathList& ours, const PathList& theirs, bool news, Time now) {
  const Pairs pairs = pairs_of(ours, theirs);
  theirs_ = theirs;
  if (now >= led_at_ + calm) {
    led_at_ = now;
    led_ = 0;
  }
  if (led_ < UINT8_MAX) ++led_;
  count_ = 0;
  for (uint8_t i = 0; i < most_paths; ++i) {
    const Pair& pair = pairs[i];
    const Route& route = (*this)[i];
    const bool same = pair.there && route.there && route.local == pair.local && route.to == pair.to;
    if (route.there && !same) take_away(i);
    if (pair.there && !same) put(i, pair.local, pair.to, news, now);
    if (pair.there) count_ = static_cast<uint8_t>(i + 1);
  }
  used(now);
}

void Routes::take_away(uint8_t route) {
  Route& one = routes_[route];
  const auto bit = static_cast<uint8_t>(1u << route);
  if (one.known) news_.removed |= bit;
  for (uint8_t* news : {&news_.lost, &news_.back, &news_.added})
    *news &= static_cast<uint8_t>(~bit);
  one.there = one.usable = one.hasty = one.told_lost = false;
  one.nonce = 0;
  one.ask_at = never;
}

void Routes::put(uint8_t route, uint8_t local, const Endpoint& to, bool news, Time now) {
  if (route >= routes_.size()) routes_.widen();
  const uint64_t inflight = routes_[route].inflight_bytes;
  for (unsigned i = 0; i < routes_.size(); ++i) {
    Route& other = routes_[i];
    if (!other.there && other.local == local && other.to == to) other.to = {};
  }
  Route fresh;
  fresh.local = local;
  fresh.there = true;
  fresh.added = news;
  fresh.to = to;
  // Where nobody is told there is no channel yet, and so no packets of another path.
  if (news) fresh.begun = now + sent_exact;
  fresh.inflight_bytes = inflight;
  fresh.ask_at = now;
  fresh.patience = least_patience;
  routes_[route] = fresh;
  if (kind_ != nullptr) open_window(route);
}

void Routes::tell(uint64_t nonce, Time now) {
  tell_nonce_ = nonce;
  tell_at_ = now;
  tells_ = 0;
  used(now);
}

std::optional<uint8_t> Routes::tells(Time now) {
  if (now < tell_at_ || !active(now)) return std::nullopt;
  tell_at_ = now + std::min(least_patience * (2 << std::min<int>(tells_, 5)), most_patience);
  const unsigned first = tells_++;
  for (unsigned i = 0; i < most_paths; ++i) {
    const auto at = static_cast<uint8_t>((first + i) % most_paths);
    if ((*this)[at].usable) return at;
  }
  return way(first);
}

// Where somebody has answered, be it lost since; else anywhere.
uint8_t Routes::fallback(unsigned number) const {
  for (unsigned i = 0; i < count_; ++i) {
    const unsigned at = (number + i) % count_;
    if (routes_[at].there && routes_[at].known) return static_cast<uint8_t>(at);
  }
  return way(number);
}

uint8_t Routes::way(unsigned number) const {
  constexpr unsigned others_each = 4;
  std::array<uint8_t, most_paths> proven{};
  std::array<uint8_t, most_paths> others{};
  unsigned proven_count = 0;
  unsigned other_count = 0;
  const auto add_proven = [&](bool usable) {
    for (uint8_t i = 0; i < count_; ++i) {
      const Route& route = routes_[i];
      if (route.there && route.known && route.usable == usable) proven[proven_count++] = i;
    }
  };
  add_proven(true);
  add_proven(false);
  for (uint8_t i = 0; i < count_; ++i) {
    if (routes_[i].there && !routes_[i].known) others[other_count++] = i;
  }
  if (proven_count == 0) return other_count > 0 ? others[number % other_count] : uint8_t{0};
  const bool other = other_count > 0 && number % others_each == others_each - 1;
  return other ? others[number / others_each % other_count] : proven[number % proven_count];
}

std::optional<uint8_t> Routes::find(uint8_t local, const Endpoint& from) const {
  for (uint8_t i = 0; i < most_paths; ++i) {
    if (routes_[i].local == local && routes_[i].to == from) return i;
  }
  return std::nullopt;
}

bool Routes::leads_to(const Endpoint& to) const {
  for (unsigned i = 0; i < routes_.size(); ++i) {
    if (routes_[i].to == to) return true;
  }
  return false;
}

bool Routes::goes_to(const Endpoint& to) const {
  for (uint8_t i = 0; i < count_; ++i) {
    if (routes_[i].there && routes_[i].to == to) return true;
  }
  return false;
}

// The one in use stays while nothing can be used.
uint8_t Routes::first_usable() const {
  for (uint8_t i = 0; i < count_; ++i) {
    if (routes_[i].usable) return i;
  }
  return fallback(next_);
}

bool Routes::changes_over() const {
  if (!one_at_a_time_) return false;
  const uint8_t first = first_usable();
  for (uint8_t i = 0; i < count_; ++i) {
    if (i != first && routes_[i].usable && routes_[i].inflight_bytes > 0) return true;
  }
  return false;
}

uint8_t Routes::pick(uint32_t bytes) {
  if (one_at_a_time_) return next_ = first_usable();
  uint8_t best = fallback(next_);
  const auto rank = [&](const Route& route, uint8_t at) {
    return route.usable + (route.usable && has_room(at, bytes));
  };
  for (uint8_t i = 0; i < count_; ++i) {
    const auto at = static_cast<uint8_t>((next_ + i) % count_);
    const Route& route = routes_[at];
    const Route& chosen = routes_[best];
    const int better = rank(route, at) - rank(chosen, best);
    const bool less =
        route.inflight_bytes + route.planned_bytes < chosen.inflight_bytes + chosen.planned_bytes;
    if (route.usable && (better > 0 || (better == 0 && less))) best = at;
  }
  next_ = static_cast<uint8_t>((best + 1) % count_);
  return best;
}

// ---- windows

void Routes::shut_windows() {
  for (unsigned i = 0; i < routes_.size(); ++i) {
    if (routes_.window(i) != nullptr) routes_.window(i)->~Controller();
  }
}

void Routes::open_windows(const congestion::ControllerKind& kind,
                          const congestion::Settings& settings) {
  kind_ = &kind;
  window_settings_ = settings;
  for (uint8_t i = 0; i < routes_.size(); ++i) open_window(i);
}

void Routes::open_window(uint8_t route) {
  congestion::Controller*& window = routes_.window(route);
  if (window != nullptr) window->~Controller();
  window = kind_->make(routes_.storage(route), window_settings_);
}

bool Routes::has_room(uint8_t route, uint32_t bytes) const {
  const uint64_t inflight = routes_[route].inflight_bytes + routes_[route].planned_bytes;
  const congestion::Controller* const window = routes_.window(route);
  return window == nullptr || inflight == 0 || inflight + bytes <= window->window_bytes();
}

bool Routes::any_room(uint32_t bytes) const {
  const uint8_t last = fallback(next_);
  if (!routes_[last].known) return false;  // until somebody has answered
  if (one_at_a_time_) return has_room(first_usable(), bytes);
  bool usable = false;
  for (uint8_t i = 0; i < count_; ++i) {
    if (!routes_[i].usable) continue;
    if (has_room(i, bytes)) return true;
    usable = true;
  }
  return !usable && has_room(last, bytes);
}

// A window grows only while its path takes no longer than twice the fastest, or hardly: a queue
// that one path has of its own would else keep the slices that went there behind all others. If all
// take long it is the ends that are busy.
void Routes::tell_windows(bool timed_out, Time now) {
  const Duration most = 2 * least_taken() + most_queueing;
  for (unsigned i = 0; i < routes_.size(); ++i) {
    Route& one = routes_[i];
    congestion::Controller* const window = routes_.window(i);
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

// By packets, of the paths that can be used; zero: none has carried any.
Duration Routes::least_taken() const {
  Duration least{};
  for (unsigned i = 0; i < routes_.size(); ++i) {
    const Route& route = routes_[i];
    if (!route.usable || route.took == Duration{}) continue;
    least = least == Duration{} ? route.took : std::min(least, route.took);
  }
  return least;
}

uint8_t Routes::for_answer() const {
  if (routes_[latest_].usable) return latest_;
  for (uint8_t i = 0; i < count_; ++i) {
    if (routes_[i].usable) return i;
  }
  return fallback(latest_);
}

// ---- packets

void Routes::arrived(uint8_t route, uint32_t bytes_in_flight, Time sent, Time now) {
  Route& one = routes_[route];
  one.inflight_bytes -= bytes_in_flight;
  if (sent < one.begun) return;
  one.arrived_bytes += bytes_in_flight;
  one.lost_in_row = 0;
  one.heard_at = now_ = now;
}

// Chance takes some packets here and there, a full queue takes many, and a peer that stands still
// takes all of them.
void Routes::lose(uint8_t route, uint32_t bytes, Time sent, bool asked) {
  Route& one = routes_[route];
  one.inflight_bytes -= bytes;
  if (sent < one.begun) return;
  ++one.lost;
  if (totals_ != nullptr) ++totals_of(route).lost;
  if (asked) return;
  one.lost_bytes += bytes;
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

void Routes::note_sent_of_arrived(uint8_t route, Time sent, Time now) {
  Route& one = routes_[route];
  if (sent < one.begun) return;
  one.latest.note(sent, now);
  const Duration sample = now - sent;
  one.took = one.took == Duration{} ? sample : one.took + (sample - one.took) / 8;
}

void Routes::judge(Duration tolerance, Time now) {
  const Duration least = least_taken();
  for (unsigned i = 0; i < routes_.size(); ++i) {
    Route& route = routes_[i];
    route.overtaken_before = route.latest.evidence({}, tolerance, 0, now).once_before;
    route.later = 2 * std::max(route.took - least, Duration{});
  }
}

void Routes::forget_packets() {
  for (unsigned i = 0; i < routes_.size(); ++i) {
    Route& route = routes_[i];
    route.latest = {};
    route.inflight_bytes = 0;
    route.arrived_bytes = route.lost_bytes = route.planned_bytes = 0;
    route.lost_in_row = 0;
  }
}

// ---- which are there

void Routes::doubt_all(Time now) {
  for (uint8_t i = 0; i < count_; ++i) {
    Route& route = routes_[i];
    if (!route.there) continue;
    route.usable = route.hasty = false;
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
  one.usable = one.hasty = false;
  one.patience = least_patience;
  one.ask_at = now;
  one.nonce = 0;
  one.unanswered = 0;
}

void Routes::question_all(Time now) {
  for (uint8_t i = 0; i < count_; ++i) {
    Route& route = routes_[i];
    if (!route.usable || route.hasty) continue;
    route.hasty = true;
    route.nonce = 0;
    route.unanswered = 0;
    route.ask_at = now;
  }
  used(now);
}

void Routes::tell_lost(uint8_t route) {
  if (!routes_[route].known || std::exchange(routes_[route].told_lost, true)) return;
  const auto bit = static_cast<uint8_t>(1u << route);
  news_.lost |= bit;
  news_.back &= static_cast<uint8_t>(~bit);
}

// Deadlines that were passed late count no more.
bool Routes::active(Time now) {
  if (now >= active_until_) active_until_ = {};
  return now < active_until_;
}

Time Routes::next_deadline() const {
  Time next = tell_at_;
  for (uint8_t i = 0; i < count_; ++i) next = std::min(next, routes_[i].ask_at);
  // What is due later than that waits until something is sent or comes.
  return next < active_until_ ? next : never;
}

std::optional<Routes::Question> Routes::question(Time now, uint64_t nonce) {
  if (!active(now)) return std::nullopt;
  for (uint8_t i = 0; i < count_; ++i) {
    Route& route = routes_[i];
    if (route.ask_at > now) continue;
    const bool in_vain = route.nonce != 0;
    if (in_vain && others_heard_after(i, route.asked_at) && route.unanswered < UINT8_MAX) {
      ++route.unanswered;
    }
    if (route.hasty && route.usable && route.unanswered > 0) suspect(i, now);
    if (route.unanswered >= questions_in_vain) {
      if (route.usable) suspect(i, now);
      tell_lost(i);
    }
    if (route.usable) {
      route.ask_at = now + (route.hasty ? least_patience : in_vain ? doubt : calm);
    } else {
      route.ask_at = now + route.patience;
      const Duration most = route.known ? most_patience : most_patience_unknown;
      route.patience = std::min(2 * route.patience, most);
    }
    route.nonce = nonce;
    route.asked_at = now;
    return Question{i, nonce};
  }
  return std::nullopt;
}

bool Routes::answered(uint8_t route, uint64_t nonce, Time now) {
  if (route >= count_ || nonce == 0 || routes_[route].nonce != nonce) return false;
  routes_[route].rtt = now - routes_[route].asked_at;
  if (totals_ != nullptr) totals_of(route).rtt = routes_[route].rtt;
  prove(route, now);
  return true;
}

void Routes::prove(uint8_t route, Time now) {
  Route& one = routes_[route];
  if (!one.there) return;
  one.nonce = 0;
  one.unanswered = 0;
  one.hasty = false;
  one.heard_at = now;
  one.known = true;
  if (std::exchange(one.usable, true)) return;
  one.lost_in_row = 0;
  one.ask_at = now + calm;
  const auto bit = static_cast<uint8_t>(1u << route);
  if (std::exchange(one.told_lost, false)) news_.back |= bit;
  if (std::exchange(one.added, false)) news_.added |= bit;
  news_.lost &= static_cast<uint8_t>(~bit);
}

}  // namespace urma::transport
