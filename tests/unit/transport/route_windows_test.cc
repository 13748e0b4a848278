#include "tests/catch.h"
#include "tests/unit/transport/route_parts.h"

namespace urma::test {
namespace {

using transport::RouteWindows;

constexpr congestion::Settings thousands{.packet_bytes = 1000, .limit_bytes = 1'000'000};

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
  with.windows.open(*congestion::find_controller("aimd"), thousands);
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
  with.windows.open(*congestion::find_controller("aimd"), thousands);
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
  with.windows.open(*congestion::find_controller("aimd"), thousands);
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
  with.windows.open(*congestion::find_controller("aimd"), thousands);
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

}  // namespace
}  // namespace urma::test
