// SPDX-License-Identifier: Apache-2.0
// When a congested route of a channel with several routes sends less, and when the channel only
// steers to other routes (UB 6.6.1.4).

#include "transport/rtp/steering.h"

#include "tests/catch.h"
#include "tests/unit/transport/route_parts.h"

namespace urma::test {
namespace {

using transport::RouteScheduler;
using transport::RouteWindows;
using transport::Steering;

// A double with the defect: each mark makes its route send less.
struct CutsAtEachMark {
  void note(bool, Duration, Time) {}
  bool cuts(unsigned, unsigned) const { return true; }
};

// Each round trip has `acks` acknowledgements, of which `congested`, spread evenly, report that one
// of four routes is congested. Returns whether that route has to send less in the end.
template <class Policy>
bool throttles(int acks, int congested) {
  Policy policy;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < acks; ++i) {
      const bool marked = (i + 1) * congested / acks != i * congested / acks;
      policy.note(marked, 100us, moment(round * 100us + i * 100us / acks));
    }
  }
  return policy.cuts(4, 1);
}

TEST_CASE("UB 6.6.1.4: marks in half of the acknowledgements of a round trip throttle no route") {
  for (const int congested : {1, 10, 20}) CHECK_FALSE(throttles<Steering>(40, congested));
  for (const int congested : {21, 30, 40}) CHECK(throttles<Steering>(40, congested));
  CHECK(throttles<CutsAtEachMark>(40, 1));
}

TEST_CASE("UB 6.6.1.4: congestion of all usable routes throttles them, however rare the marks") {
  Steering policy;
  for (int i = 0; i < 100; ++i) policy.note(i % 10 == 0, 100us, moment(i * 1us));
  CHECK_FALSE(policy.cuts(2, 1));
  CHECK(policy.cuts(2, 2));
  CHECK(policy.cuts(1, 1));
}

TEST_CASE("acknowledgements of earlier round trips, and too few of them, throttle no route") {
  Steering policy;
  policy.note(true, 100us, moment(0us));
  CHECK_FALSE(policy.cuts(2, 1));
  for (int i = 1; i < 10; ++i) policy.note(true, 100us, moment(i * 10us));
  CHECK(policy.cuts(2, 1));
  policy.note(false, 100us, moment(500us));
  policy.note(false, 100us, moment(510us));
  CHECK_FALSE(policy.cuts(2, 1));
}

// ---- with windows

constexpr congestion::Settings kilobytes{.packet_bytes = 1000, .limit_bytes = 1'000'000};

struct Steered : TableOf {
  explicit Steered(uint8_t count) : TableOf(count) {
    for (uint8_t i = 0; i < count; ++i) {
      table[i].usable = table[i].known = true;
      table[i].took = 100us;
    }
    windows.open(*congestion::find_controller("ldcp"), kilobytes);
  }
  // A packet of the route is acknowledged, with a report.
  void acknowledge(uint8_t route, bool marked, bool steers = true) {
    windows.left(route, 1000);
    windows.arrived(route, 1000, now);
    const congestion::Feedback feedback{.marked_bytes = marked ? 1000u : 0u};
    windows.update(100us, {.feedback = &feedback, .route = route, .steers = steers}, now);
  }
  uint64_t window(uint8_t route) { return table.window(route)->window_bytes(); }

  Time now = moment(0us);
  RouteWindows windows{table};
  RouteScheduler scheduler{table, windows};
};

TEST_CASE("UB 6.6.1.4: one congested path of two is avoided, but its window stays as it is") {
  Steered with(2);
  const uint64_t before = with.window(0);
  for (int i = 0; i < 100; ++i, with.now += 2us) {
    with.acknowledge(0, true);
    with.acknowledge(1, false);
    CHECK(with.scheduler.pick(1000, with.now) == 1);
  }
  CHECK(with.window(0) == before);
  // It is used if the other one is full, and as before a round trip after its last mark.
  with.windows.left(1, 1'000'000);
  CHECK(with.scheduler.pick(1000, with.now) == 0);
  CHECK(with.windows.fit(0, 1000, with.now) == RouteWindows::Fit::room);
  with.now += 100us;
  CHECK(with.windows.fit(0, 1000, with.now) == RouteWindows::Fit::good);
}

TEST_CASE("UB 6.6.1.4: nor does the delay of the avoided path reduce its window") {
  for (const bool steers : {true, false}) {
    Steered with(2);
    with.windows.open(*congestion::find_controller("caqm_w"), kilobytes);
    const auto acknowledge = [&](uint8_t route, bool marked, Duration sample) {
      with.table[route].sample = sample;
      with.acknowledge(route, marked, steers);
    };
    for (int i = 0; i < 40; ++i, with.now += 100us) acknowledge(0, false, 100us);
    const uint64_t before = with.window(0);
    for (int i = 0; i < 40; ++i, with.now += 50us) {
      // The mark is too small to shrink the window by itself.
      acknowledge(0, i % 2 == 0, 300us);
      acknowledge(1, false, 100us);
    }
    CHECK((with.window(0) == before) == steers);
  }
}

TEST_CASE("UB 6.6.1.4: if both paths are congested, or only one may be used, windows shrink") {
  Steered both(2);
  const uint64_t before = both.window(0);
  for (int i = 0; i < 10; ++i, both.now += 2us) {
    both.acknowledge(0, i % 3 == 0);
    both.acknowledge(1, i % 3 == 1);
  }
  CHECK(both.window(0) < before);
  CHECK(both.window(1) < before);
  Steered one(2);
  one.acknowledge(0, true, false);
  CHECK(one.window(0) < before);
}

TEST_CASE("UB 6.6.1.4: a notification about one path of two reduces no window") {
  Steered with(2);
  with.windows.open(*congestion::find_controller("caqm_r"), kilobytes);
  // The window that a notification halves.
  for (int i = 0; i < 40; ++i, with.now += 200us) {
    for (uint8_t route = 0; route < 2; ++route) with.acknowledge(route, false);
  }
  const uint64_t before = with.window(0);
  const congestion::Notified event{
      .now = with.now, .rtt = 100us, .severe = true, .last_hop = false};
  with.windows.notified(0, event, true);
  CHECK(with.window(0) == before);
  with.windows.notified(1, event, true);
  CHECK(with.window(0) == before);
  CHECK(with.window(1) < before);
}

}  // namespace
}  // namespace urma::test
