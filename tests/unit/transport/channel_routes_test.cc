// SPDX-License-Identifier: Apache-2.0
#include "transport/rtp/channel_routes.h"

#include "tests/catch.h"
#include "tests/unit/transport/route_parts.h"

namespace urma::test {
namespace {

using transport::ChannelRoutes;
using transport::Routes;
using transport::Waits;

constexpr congestion::Settings thousands{.packet_bytes = 1000, .limit_bytes = 1'000'000};

// Two usable routes, the n-th from our n-th address to the peer's n-th, and a new channel on them.
struct Two {
  explicit Two(bool one_at_a_time = false) {
    ask(routes, 0ms, 10ms);
    channel.open(one_at_a_time, *congestion::find_controller("aimd"), thousands);
  }
  void fill(uint8_t route) {
    while (routes.windows().has_room(route, 1000)) channel.left(route, 1000);
  }
  bool asks(Time now) { return routes.health().question(now, 1).has_value(); }

  Routes routes{addresses(2, 1), addresses(2, 2), moment(0s)};
  ChannelRoutes channel{&routes};
};

TEST_CASE("channel routes: a single path permits everything, and has the channel's addresses") {
  const ChannelRoutes one = nullptr;
  CHECK_FALSE(one.several());
  CHECK(one.any_room(UINT32_MAX));
  CHECK(one.any_room_for_new(UINT32_MAX));
  CHECK(one.pick(1000) == 0);
  CHECK(one.pick_next(0, 1000, Balance::packet) == 0);
  CHECK(one.for_answer() == 0);
  TxFrame frame;
  frame.to = address(3, 7);
  frame.path = 3;
  one.address(frame, 0);
  CHECK(frame.to == address(3, 7));
  CHECK(frame.path == 3);
  CHECK_FALSE(one.leads_to(address(0, 2)));
}

TEST_CASE("channel routes: on a single path, the rules of the mode alone judge packets") {
  const ChannelRoutes one = nullptr;
  CHECK(one.next_deadline() == never);
  CHECK(one.took(0) == Duration{});
  CHECK(one.spread(Waits(1ms), 1s) == Duration{});
  CHECK_FALSE(one.judged().overtaken(0, Time{}));
  CHECK(one.judged().later(0) == Duration{});
  CHECK(one.judged().patience(0, Time{}, 0ms) == never);
}

TEST_CASE("channel routes: a frame came from the peer if it came over one of the routes") {
  const ChannelRoutes one = nullptr;
  const Endpoint only = address(3, 7);
  const Endpoint peers = address(0, 2);
  const Endpoint stranger = address(9, 9);
  RxFrame frame;
  frame.from = &only;
  CHECK(one.came_from(frame, only, moment(1ms)));
  CHECK_FALSE(one.came_from(frame, stranger, moment(1ms)));
  CHECK_FALSE(one.any_news());
  Two with;
  frame.path = 0;
  CHECK_FALSE(with.channel.came_from(frame, only, moment(1ms)));
  frame.from = &peers;
  CHECK(with.channel.came_from(frame, stranger, moment(1ms)));
  frame.path = 1;
  CHECK_FALSE(with.channel.came_from(frame, stranger, moment(1ms)));
}

TEST_CASE("channel routes: a slice keeps its route while that is usable and has room") {
  for (const uint8_t route : {uint8_t{0}, uint8_t{1}}) {
    Two with;
    for (int i = 0; i < 4; ++i) CHECK(with.channel.pick_next(route, 1000, Balance::slice) == route);
    with.fill(route);
    CHECK(with.channel.pick_next(route, 1000, Balance::slice) == 1 - route);
    Two lost;
    ask(lost.routes, 10ms, 500ms, static_cast<uint8_t>(1 << route));
    REQUIRE_FALSE(lost.routes[route].usable);
    CHECK(lost.channel.pick_next(route, 1000, Balance::slice) == 1 - route);
  }
}

TEST_CASE("channel routes: packets that are balanced one by one take the routes in turn") {
  Two with;
  uint8_t route = with.channel.pick(1000);
  for (int i = 0; i < 4; ++i) {
    const uint8_t next = with.channel.pick_next(route, 1000, Balance::packet);
    CHECK(next == 1 - route);
    route = next;
  }
}

TEST_CASE("channel routes: one at a time, all packets take the first route, and a new one waits") {
  Two with(true);
  CHECK(with.channel.pick_next(1, 1000, Balance::slice) == 0);
  CHECK(with.channel.any_room_for_new(1000));
  with.channel.left(1, 1000);  // in flight on another route: a new packet would overtake it
  CHECK_FALSE(with.channel.any_room_for_new(1000));
  CHECK(with.channel.any_room(1000));
  Two both;
  both.channel.left(1, 1000);
  CHECK(both.channel.any_room_for_new(1000));
}

TEST_CASE("channel routes: there is room while any route has room") {
  Two with;
  with.fill(0);
  CHECK(with.channel.any_room(1000));
  CHECK(with.channel.any_room_for_new(1000));
  with.fill(1);
  CHECK_FALSE(with.channel.any_room(1000));
  CHECK_FALSE(with.channel.any_room_for_new(1000));
}

TEST_CASE("channel routes: a time-out questions the routes only if one is used at a time") {
  for (const bool one_at_a_time : {false, true}) {
    Two with(one_at_a_time);
    REQUIRE_FALSE(with.asks(moment(10ms)));
    with.channel.timed_out(moment(10ms));
    CHECK(with.asks(moment(10ms)) == one_at_a_time);
  }
}

TEST_CASE("channel routes: arrivals on a route judge its packets, unless one is used at a time") {
  for (const bool one_at_a_time : {false, true}) {
    Two with(one_at_a_time);
    with.channel.note_arrival(0, moment(20ms), moment(22ms));
    const transport::JudgedRoutes judged = with.channel.judged();
    judged.judge(1ms, moment(22ms));
    CHECK(judged.overtaken(0, moment(18ms)) == !one_at_a_time);
    CHECK_FALSE(judged.overtaken(1, moment(18ms)));
    CHECK((judged.patience(0, moment(19ms), 1ms) == never) == one_at_a_time);
    CHECK(with.channel.took(0) > Duration{});
  }
}

TEST_CASE(
    "channel routes: packets of several routes overtake each other by two round trips or what an "
    "end runs late") {
  Two with;
  CHECK(with.channel.spread(Waits(1ms), 10us) == 1ms);
  CHECK(with.channel.spread(Waits(1ms), 3ms) == 6ms);
  CHECK(with.channel.spread(Waits(5ms), 10us) == 5ms);
}

TEST_CASE("channel routes: a frame is addressed by its route") {
  Two with;
  for (const uint8_t route : {uint8_t{0}, uint8_t{1}}) {
    TxFrame frame;
    with.channel.address(frame, route);
    CHECK(frame.to == address(route, 2));
    CHECK(frame.path == route);
    CHECK(with.channel.leads_to(frame.to));
  }
  CHECK_FALSE(with.channel.leads_to(address(0, 3)));
}

}  // namespace
}  // namespace urma::test
