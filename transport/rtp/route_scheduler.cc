#include "transport/rtp/route_scheduler.h"

namespace urma::transport {

// Returns the route to use while none is usable: one on which the peer has answered before, else
// any.
uint8_t RouteScheduler::fallback(unsigned number) const {
  for (unsigned i = 0; i < table_.count(); ++i) {
    const unsigned at = (number + i) % table_.count();
    if (table_[at].there && table_[at].known) return static_cast<uint8_t>(at);
  }
  return way(number);
}

uint8_t RouteScheduler::way(unsigned number) const {
  constexpr unsigned others_each = 4;
  std::array<uint8_t, most_paths> proven{};
  std::array<uint8_t, most_paths> others{};
  unsigned proven_count = 0;
  unsigned other_count = 0;
  const auto add_proven = [&](bool usable) {
    for (uint8_t i = 0; i < table_.count(); ++i) {
      const Route& route = table_[i];
      if (route.there && route.known && route.usable == usable) proven[proven_count++] = i;
    }
  };
  add_proven(true);
  add_proven(false);
  for (uint8_t i = 0; i < table_.count(); ++i) {
    if (table_[i].there && !table_[i].known) others[other_count++] = i;
  }
  if (proven_count == 0) return other_count > 0 ? others[number % other_count] : uint8_t{0};
  const bool other = other_count > 0 && number % others_each == others_each - 1;
  return other ? others[number / others_each % other_count] : proven[number % proven_count];
}

uint8_t RouteScheduler::usable_way(unsigned number) const {
  for (unsigned i = 0; i < most_paths; ++i) {
    const auto at = static_cast<uint8_t>((number + i) % most_paths);
    if (table_[at].usable) return at;
  }
  return way(number);
}

// Returns the first usable route. While no route is usable, the one in use stays in use.
uint8_t RouteScheduler::first_usable() const {
  for (uint8_t i = 0; i < table_.count(); ++i) {
    if (table_[i].usable) return i;
  }
  return fallback(next_);
}

bool RouteScheduler::changes_over() const {
  if (!one_at_a_time_) return false;
  const uint8_t first = first_usable();
  for (uint8_t i = 0; i < table_.count(); ++i) {
    if (i != first && table_[i].usable && table_[i].inflight_bytes > 0) return true;
  }
  return false;
}

bool RouteScheduler::any_room(uint32_t bytes) const {
  const uint8_t last = fallback(next_);
  if (!table_[last].known) return false;  // the peer has not answered on any route yet
  if (one_at_a_time_) return windows_.has_room(first_usable(), bytes);
  bool usable = false;
  for (uint8_t i = 0; i < table_.count(); ++i) {
    if (!table_[i].usable) continue;
    if (windows_.has_room(i, bytes)) return true;
    usable = true;
  }
  return !usable && windows_.has_room(last, bytes);
}

uint8_t RouteScheduler::pick(uint32_t bytes) {
  if (one_at_a_time_) return next_ = first_usable();
  uint8_t best = fallback(next_);
  const auto rank = [&](uint8_t at) {
    const bool usable = table_[at].usable;
    return usable + (usable && windows_.has_room(at, bytes));
  };
  for (uint8_t i = 0; i < table_.count(); ++i) {
    const auto at = static_cast<uint8_t>((next_ + i) % table_.count());
    if (!table_[at].usable) continue;
    const int better = rank(at) - rank(best);
    const bool less = windows_.load(at) < windows_.load(best);
    if (better > 0 || (better == 0 && less)) best = at;
  }
  next_ = static_cast<uint8_t>((best + 1) % table_.count());
  return best;
}

uint8_t RouteScheduler::for_answer() const {
  if (table_[latest_].usable) return latest_;
  for (uint8_t i = 0; i < table_.count(); ++i) {
    if (table_[i].usable) return i;
  }
  return fallback(latest_);
}

}  // namespace urma::transport
