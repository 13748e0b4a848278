// SPDX-License-Identifier: Apache-2.0
#include "congestion/arithmetic.h"
#include "tests/catch.h"
#include "tests/unit/transport/route_parts.h"

namespace urma::test {
namespace {

using transport::RouteWindows;

constexpr congestion::Settings small_windows{.packet_bytes = 1000, .limit_bytes = 1'000'000};

struct Windows : TableOf {
  using TableOf::TableOf;
  void send(uint8_t route, int packets) {
    for (int i = 0; i < packets; ++i) windows.left(route, 1000);
  }

  RouteWindows windows{table};
};

TEST_CASE("any packet has room before the windows are in use, and on an empty route") {
  Windows with(2);
  with.send(0, 1000);
  CHECK(with.windows.has_room(0, 1000));
  with.windows.open(*congestion::find_controller("fixed"),
                    {.packet_bytes = 1000, .limit_bytes = 1});
  CHECK_FALSE(with.windows.has_room(0, 1));
  CHECK(with.windows.has_room(1, 9000));
}

TEST_CASE("a lost packet shrinks the window of its route only; a probe shrinks none") {
  Windows with(3);
  with.windows.open(*congestion::find_controller("aimd"), small_windows);
  for (uint8_t i = 0; i < 3; ++i) with.send(i, 32);
  for (uint8_t i = 0; i < 3; ++i) CHECK_FALSE(with.windows.has_room(i, 1));
  with.windows.lost(0, 1000, moment(10ms), false);
  with.windows.lost(1, 1000, moment(10ms), true);
  with.windows.update(1ms, {}, moment(20ms));
  CHECK_FALSE(with.windows.has_room(0, 1000));
  CHECK(with.windows.has_room(1, 1000));
  CHECK_FALSE(with.windows.has_room(1, 1001));
  CHECK(with.table[0].lost == 1);
  CHECK(with.table[1].lost == 1);
  CHECK(with.table[2].lost == 0);
  CHECK(with.table[0].inflight_bytes == 31'000);
}

TEST_CASE("a window grows with arrivals, unless its route takes more than twice the fastest time") {
  Windows with(2);
  with.windows.open(*congestion::find_controller("aimd"), small_windows);
  with.table[0].took = 4ms;
  with.table[1].took = 4ms;
  const auto flows = [&](uint8_t route, Duration least) {
    with.send(route, 32);
    for (int i = 0; i < 32; ++i) with.windows.arrived(route, 1000, moment(10ms));
    with.windows.update(least, {}, moment(20ms));
    CHECK(with.table[route].inflight_bytes == 0);
    with.send(route, 32);
    return with.windows.has_room(route, 1000);
  };
  CHECK(flows(0, 2ms));
  CHECK_FALSE(flows(1, 1ms));  // 4 ms are more than twice 1 ms and 1 ms
}

TEST_CASE("planned packets count as in flight until the next plan begins") {
  Windows with(1);
  with.windows.open(*congestion::find_controller("aimd"), small_windows);
  with.send(0, 20);
  with.windows.plan(0, 11'000);
  CHECK(with.windows.load(0) == 31'000);
  CHECK(with.windows.has_room(0, 1000));
  CHECK_FALSE(with.windows.has_room(0, 1001));
  with.windows.begin_plan();
  CHECK(with.windows.load(0) == 20'000);
  with.windows.resized(0, -500);
  CHECK(with.windows.load(0) == 19'500);
  with.windows.forget_packets();
  CHECK(with.windows.load(0) == 0);
}

TEST_CASE("a new route has a new window and counters of its own") {
  Windows with(1);
  transport::AllPathTotals totals{};
  with.table.count_in(totals);
  with.windows.open(*congestion::find_controller("aimd"), small_windows);
  with.send(0, 32);
  for (int i = 0; i < 12; ++i) with.windows.lost(0, 1000, moment(1ms), false);
  with.windows.update(0ms, {.timed_out = true}, moment(2ms));
  CHECK_FALSE(with.windows.has_room(0, 1000));
  with.table[0].begun = moment(5ms);
  with.windows.add(0);
  CHECK(with.table[0].inflight_bytes == 20'000);
  CHECK(with.windows.has_room(0, 12'000));
  // Packets of the earlier route are acknowledged or lost. They count neither as losses nor as
  // arrivals of the new one.
  for (int i = 0; i < 10; ++i) with.windows.lost(0, 1000, moment(1ms), false);
  for (int i = 0; i < 10; ++i) with.windows.arrived(0, 1000, moment(1ms));
  with.windows.update(0ms, {.timed_out = true}, moment(6ms));
  CHECK(with.table[0].inflight_bytes == 0);
  CHECK(with.table[0].lost == 0);
  CHECK(with.table[0].sent == 0);
  CHECK(totals[0].sent == 32);
  CHECK(totals[0].lost == 12);
}

// ---- round trips of acknowledgements that confirm packets of two routes

struct TwoWays : TableOf {
  explicit TwoWays(std::string_view control, ReportForm form) : TableOf(2) {
    for (uint8_t i = 0; i < 2; ++i) {
      table[i].usable = table[i].known = true;
      table[i].took = 100us;
      table[i].taken = transport::ReportsTaken(form);
    }
    windows.open(*congestion::find_controller(control), small_windows);
    for (uint8_t i = 0; i < 2; ++i) windows.left(i, 60'000);
  }
  // An acknowledgement arrives on this route, with a report about it. A packet of each route has
  // arrived, after this round trip. Returns whether a window has shrunk.
  bool acknowledge(uint8_t on, std::array<Duration, 2> samples, Duration queue = {}) {
    const congestion::Feedback granted{
        .increase = true,
        .switched = true,
        .hint = 32,
        .switch_queue = congestion::queue_code(congestion::seconds(queue))};
    const auto before = both();
    for (uint8_t i = 0; i < 2; ++i) {
      delays.note_arrival(i, now - samples[i], now);
      windows.left(i, 1000);
      windows.arrived(i, 1000, now);
    }
    const bool reported = table[on].taken.form() != ReportForm::none;
    windows.update(100us, {.feedback = reported ? &granted : nullptr, .route = on}, now);
    now += 50us;
    const auto after = both();
    return after[0] < before[0] || after[1] < before[1];
  }
  std::array<uint64_t, 2> both() {
    return {table.window(0)->window_bytes(), table.window(1)->window_bytes()};
  }
  bool shrinks(int times, std::array<Duration, 2> on_first, std::array<Duration, 2> on_second,
               Duration queue = {}) {
    bool any = false;
    for (int i = 0; i < times; ++i) {
      any |= acknowledge(0, on_first, queue);
      any |= acknowledge(1, on_second, queue);
    }
    return any;
  }

  Time now = moment(10ms);
  transport::RouteDelays delays{table};
  RouteWindows windows{table};
};

constexpr std::array<Duration, 2> without_queue{100us, 100us};
constexpr std::array<Duration, 2> in_queue{300us, 300us};

TEST_CASE("a queue of a switch does not slow the routes that the acknowledgement is not about") {
  for (const auto& [control, form] :
       {std::pair{"caqm_w", ReportForm::caqm}, {"caqm_r", ReportForm::rate}}) {
    INFO(control);
    TwoWays with(control, form);
    CHECK_FALSE(with.shrinks(20, without_queue, without_queue));
    const auto before = with.both();
    CHECK_FALSE(with.shrinks(20, in_queue, in_queue, 200us));
    CHECK(with.both()[0] > before[0]);
    CHECK(with.both()[1] > before[1]);
    // A queue elsewhere still slows both.
    const auto grown = with.both();
    CHECK(with.shrinks(20, in_queue, in_queue));
    CHECK(with.both()[0] < grown[0]);
    CHECK(with.both()[1] < grown[1]);
  }
}

TEST_CASE("the way back of a fast route does not make that of a slow one look like a queue") {
  TwoWays with("caqm_w", ReportForm::caqm);
  // A packet takes 10 us on the one and 50 us on the other.
  CHECK_FALSE(with.shrinks(100, {20us, 60us}, {60us, 100us}));
  CHECK(with.both()[1] > 10'000);
}

TEST_CASE("without reports, all round trips count") {
  TwoWays with("caqm_w", ReportForm::none);
  CHECK_FALSE(with.shrinks(20, without_queue, without_queue));
  const auto before = with.both();
  CHECK(with.shrinks(20, in_queue, in_queue));
  CHECK(with.both()[0] < before[0]);
  CHECK(with.both()[1] < before[1]);
}

}  // namespace
}  // namespace urma::test
