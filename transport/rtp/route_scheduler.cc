// SPDX-License-Identifier: Apache-2.0
#include "transport/rtp/route_scheduler.h"

#include <algorithm>

namespace urma::transport {

using Fit = RouteWindows::Fit;

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

template <class Visit>
bool RouteScheduler::any_candidate(const Visit& visit) const {
  if (one_at_a_time_) return visit(first_usable());
  bool usable = false;
  for (uint8_t i = 0; i < table_.count(); ++i) {
    if (!table_[i].usable) continue;
    if (visit(i)) return true;
    usable = true;
  }
  return !usable && visit(fallback(next_));
}

bool RouteScheduler::any_room(uint32_t bytes, Time now) const {
  if (!table_[fallback(next_)].known) return false;  // the peer has not answered on any route yet
  return any_candidate([&](uint8_t at) { return windows_.fit(at, bytes, now) >= Fit::room; });
}

Time RouteScheduler::departure(uint32_t bytes) const {
  if (!windows_.paces()) return {};
  Time next = never;
  any_candidate([&](uint8_t at) {
    if (bytes == 0 || windows_.has_room(at, bytes)) next = std::min(next, windows_.departure(at));
    return false;
  });
  return next;
}

uint8_t RouteScheduler::pick(uint32_t bytes, Time now) {
  if (one_at_a_time_) return next_ = first_usable();
  uint8_t best = fallback(next_);
  const auto rank = [&](uint8_t at) {
    return table_[at].usable ? 1 + static_cast<int>(windows_.fit(at, bytes, now)) : 0;
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
  const auto rank = [&](uint8_t at) {
    const Route& route = table_[at];
    return route.usable ? 1 + 256 * route.given.due() + route.given.unreported() : 0;
  };
  uint8_t best = latest_;
  for (uint8_t i = 0; i < table_.count(); ++i) {
    if (rank(i) > rank(best)) best = i;
  }
  return table_[best].usable ? best : fallback(latest_);
}

}  // namespace urma::transport
