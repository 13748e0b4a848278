// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <optional>

#include "base/assert.h"
#include "base/slab.h"
#include "congestion/controller.h"
#include "transport/rtp/route.h"
#include "wire/path_list.h"

namespace urma::transport {

// Totals over all peers for one of our paths.
struct PathTotals {
  uint64_t sent = 0;  // data packets, each copy
  uint64_t lost = 0;
  Duration rtt{};  // of the last question that was answered
};
using AllPathTotals = std::array<PathTotals, most_paths>;

// The routes of a channel: the table pairs our n-th address with the peer's n-th, and owns the
// memory of all routes. A route keeps its number for as long as its pair of addresses exists. The
// table does not know whether a route works, nor what is sent on it.
class RouteTable {
 public:
  // Memory for four routes, which is enough for most channels. A channel that once had more routes
  // keeps the second four until it is destroyed.
  struct Four {
    std::array<Route, 4> routes;
    // RouteWindows makes and destroys the controllers in this storage.
    alignas(8) std::array<std::byte[congestion::Controller::storage], 4> storage;
    std::array<congestion::Controller*, 4> windows{};
  };

  // `more`: memory for the routes from the fifth on, enough for each channel; it outlives them. It
  // may be null if no channel has more than four routes.
  explicit RouteTable(Slab<Four>* more) : more_(more) {}
  ~RouteTable() {
    if (others_ != nullptr) more_->destroy(others_);
  }
  RouteTable(const RouteTable&) = delete;
  RouteTable& operator=(const RouteTable&) = delete;

  // Routes by number, one bit each. A route whose addresses were replaced is in both.
  struct Changes {
    uint8_t removed = 0;
    uint8_t added = 0;
  };
  // Replaces both lists of addresses; each has at least one. Routes whose addresses stay are not
  // touched. `begun`: packets sent before this time did not take the new routes.
  Changes lead(const PathList& ours, const PathList& theirs, Time begun, Time now);
  const PathList& theirs() const { return theirs_; }
  // Returns whether lists have changed so often that another list of the peer is to be refused for
  // now.
  bool led_often(Time now) const { return led_ >= often && now < led_at_ + often_within; }

  // Returns one more than the highest number of an existing route.
  uint8_t count() const { return count_; }
  // Returns how many routes there is memory for: 4 or most_paths.
  unsigned size() const { return others_ == nullptr ? 4 : most_paths; }
  // The first needs a number below `size`. The second returns an empty route for any other number.
  Route& operator[](unsigned i) { return of(i).routes[i % 4]; }
  const Route& operator[](unsigned i) const { return i < size() ? of(i).routes[i % 4] : nowhere; }

  // Returns the route between these two addresses. A route that was removed is found too, because
  // its packets may still arrive.
  std::optional<uint8_t> find(uint8_t local, const Endpoint& from) const;
  // Returns whether a route leads, or led before it was removed, to this address.
  bool leads_to(const Endpoint& to) const;
  // Returns whether a route leads to this address now.
  bool goes_to(const Endpoint& to) const;

  congestion::Controller*& window(unsigned i) { return of(i).windows[i % 4]; }
  const congestion::Controller* window(unsigned i) const { return of(i).windows[i % 4]; }
  void* storage(unsigned i) { return of(i).storage[i % 4]; }

  // Sets where the totals over all peers are kept.
  void count_in(AllPathTotals& totals) { totals_ = &totals; }
  // Returns the totals of our path that this route starts at, or null if none are kept.
  PathTotals* totals(uint8_t route) {
    return totals_ == nullptr ? nullptr : &(*totals_)[(*this)[route].local];
  }

 private:
  static constexpr uint8_t often = 8;
  static constexpr Duration often_within = std::chrono::milliseconds(100);
  static const Route nowhere;

  void put(uint8_t route, uint8_t local, const Endpoint& to, Time begun);
  void note_led(Time now);
  // `i` is below `size`.
  Four& of(unsigned i) { return i < 4 ? first_ : *others_; }
  const Four& of(unsigned i) const { return i < 4 ? first_ : *others_; }

  Four first_;
  Four* others_ = nullptr;
  Slab<Four>* more_;
  AllPathTotals* totals_ = nullptr;
  PathList theirs_;
  uint8_t count_ = 0;
  uint8_t led_ = 0;  // calls of `lead` since led_at_
  Time led_at_{};
};

}  // namespace urma::transport
