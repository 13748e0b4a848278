// SPDX-License-Identifier: Apache-2.0
#include "fabric/event_queue.h"

#include <set>

#include "base/prng.h"
#include "tests/catch.h"

namespace urma::fabric {
namespace {

struct HappensBefore {
  bool operator()(const Event& a, const Event& b) const { return happens_before(a, b); }
};

// Durations of all orders of magnitude, often 0, so that many events have the same time.
Duration some_delay(Prng& prng) {
  return Duration(static_cast<int64_t>(prng.below(uint64_t{1} << prng.below(27))));
}

constexpr uint32_t most_pending = 64;

TEST_CASE(
    "events happen in the order of time, destination and sequence, whenever they are pushed") {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    INFO("seed " << seed);
    Prng prng(seed);
    EventQueue queue({.events = most_pending,
                      .bucket_bits = static_cast<unsigned>(prng.below(8)),
                      .ring_bits = static_cast<unsigned>(prng.between(6, 10))});
    std::set<Event, HappensBefore> model;
    Time now{};
    // The sequence wraps.
    uint32_t sequence = UINT32_MAX - 500;
    bool same = true;
    for (int step = 0; step < 2000; ++step) {
      if (prng.chance(0.55) && model.size() < most_pending) {
        const Event event{now + some_delay(prng), static_cast<uint32_t>(prng.below(4)), ++sequence,
                          sequence, 0};
        queue.push(event);
        model.insert(event);
      } else {
        const Time until = prng.chance(0.5) ? never : now + some_delay(prng);
        const bool expected = !model.empty() && model.begin()->at <= until;
        Event event{};
        same = same && queue.pop(until, event) == expected;
        if (expected) {
          same = same && event.index == model.begin()->index && event.at == model.begin()->at;
          now = model.begin()->at;
          model.erase(model.begin());
        } else if (until != never) {
          now = until;
        }
      }
      same = same && queue.size() == model.size();
      same = same && queue.next() == (model.empty() ? never : model.begin()->at);
    }
    REQUIRE(same);
  }
}

}  // namespace
}  // namespace urma::fabric
