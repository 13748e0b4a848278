// SPDX-License-Identifier: Apache-2.0
#include "transport/rtp/route_table.h"

#include <algorithm>

namespace urma::transport {

namespace {

struct Pair {
  bool there = false;
  uint8_t local = 0;
  Endpoint to{};
};
using Pairs = std::array<Pair, most_paths>;

// Pairs our n-th address with the peer's n-th. The shorter list starts again with its first
// address.
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
  // If no number has an address at both ends, the first addresses are paired.
  if (!any) pairs[0] = {true, ours.first(), theirs.endpoints[theirs.first()]};
  return pairs;
}

}  // namespace

const Route RouteTable::nowhere{};

void RouteTable::note_led(Time now) {
  if (now >= led_at_ + often_within) {
    led_at_ = now;
    led_ = 0;
  }
  if (led_ < UINT8_MAX) ++led_;
}

RouteTable::Changes RouteTable::lead(const PathList& ours, const PathList& theirs, Time begun,
                                     Time now) {
  const Pairs pairs = pairs_of(ours, theirs);
  Changes out;
  theirs_ = theirs;
  note_led(now);
  count_ = 0;
  for (uint8_t i = 0; i < most_paths; ++i) {
    const auto bit = static_cast<uint8_t>(1u << i);
    const Pair& pair = pairs[i];
    const Route& route = std::as_const(*this)[i];
    const bool same = pair.there && route.there && route.local == pair.local && route.to == pair.to;
    if (pair.there) count_ = static_cast<uint8_t>(i + 1);
    if (same) continue;
    if (route.there) {
      (*this)[i].there = false;
      out.removed |= bit;
    }
    if (pair.there) {
      put(i, pair.local, pair.to, begun);
      out.added |= bit;
    }
  }
  return out;
}

void RouteTable::put(uint8_t route, uint8_t local, const Endpoint& to, Time begun) {
  if (route >= size()) {
    URMA_ASSERT(more_ != nullptr,
                "a device that may have more than four paths has memory for them");
    others_ = more_->create();
  }
  // `find` must return the new route, not one that was removed.
  for (unsigned i = 0; i < size(); ++i) {
    Route& other = (*this)[i];
    if (!other.there && other.local == local && other.to == to) other.to = {};
  }
  Route& one = (*this)[route];
  one.to = to;
  one.begun = begun;
  one.local = local;
  one.there = true;
}

std::optional<uint8_t> RouteTable::find(uint8_t local, const Endpoint& from) const {
  for (uint8_t i = 0; i < most_paths; ++i) {
    if ((*this)[i].local == local && (*this)[i].to == from) return i;
  }
  return std::nullopt;
}

bool RouteTable::leads_to(const Endpoint& to) const {
  for (unsigned i = 0; i < size(); ++i) {
    if ((*this)[i].to == to) return true;
  }
  return false;
}

bool RouteTable::goes_to(const Endpoint& to) const {
  for (uint8_t i = 0; i < count_; ++i) {
    if ((*this)[i].there && (*this)[i].to == to) return true;
  }
  return false;
}

}  // namespace urma::transport
