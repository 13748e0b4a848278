// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <utility>
#include <vector>

#include "base/prng.h"
#include "tests/catch.h"

namespace urma::test {

// A send or receive queue, and lists of what must be in each of its slots. Random steps use both,
// and compare them. The derived class says how the queue is posted to and completed; `Posted` is
// what it remembers of a post, with its tag.
template <class Queue, class Posted>
class QueueBesideLists {
 public:
  // `options`: what the queue's constructor takes after the number of slots.
  template <class... Options>
  explicit QueueBesideLists(uint16_t slots, Options... options)
      : prng_(slots), vacant_(slots), queue_(slots, options...) {}
  virtual ~QueueBesideLists() = default;

  // A busy queue is posted to more often than works are taken from it.
  void step(bool busy) {
    if (prng_.chance(busy ? 0.6 : 0.3)) {
      post();
    } else if (prng_.chance(0.5)) {
      take();
    } else {
      complete();
    }
    REQUIRE(queue_.vacant() == vacant_);
    REQUIRE(queue_.waiting() == posted_.size());
    for (const auto& [lease, what] : taken_) require_kept(lease, what);
  }
  uint64_t refused() const { return refused_; }
  uint64_t laps() const { return next_tag_ / queue_.count(); }

 protected:
  virtual void post() = 0;
  // Completes some of what was taken, in any order.
  virtual void complete() = 0;
  virtual void require_kept(uint16_t lease, const Posted& posted) const = 0;

  // Returns a random number below `count`.
  uint32_t below(size_t count) {
    return static_cast<uint32_t>(prng_.below(static_cast<uint32_t>(count)));
  }
  void take() {
    if (posted_.empty()) return;
    const uint16_t lease = queue_.take_posted();
    REQUIRE(lease < queue_.count());
    for (const auto& [other, what] : taken_) REQUIRE(other != lease);
    taken_.emplace_back(lease, posted_.front());
    posted_.pop_front();
  }
  // Returns a lease that was taken, which the caller completes. There must be one.
  uint16_t release_one() {
    const auto at = taken_.begin() + static_cast<ptrdiff_t>(below(taken_.size()));
    const uint16_t lease = at->first;
    taken_.erase(at);
    ++vacant_;
    return lease;
  }

  Prng prng_;
  uint64_t next_tag_ = 0;
  uint64_t refused_ = 0;
  uint32_t vacant_;
  std::deque<Posted> posted_;
  std::vector<std::pair<uint16_t, Posted>> taken_;
  Queue queue_;
};

// Runs random steps on queues of several sizes, in times that fill them and times that empty them.
template <class Both>
void run_beside_lists() {
  for (const uint16_t slots : {uint16_t{1}, uint16_t{2}, uint16_t{3}, uint16_t{8}, uint16_t{21}}) {
    INFO("slots " << slots);
    Both both(slots);
    for (int step = 0; step < 5000; ++step) both.step(step / 100 % 2 == 0);
    CHECK(both.refused() > 100);
    CHECK(both.laps() > 10);
  }
}

}  // namespace urma::test
