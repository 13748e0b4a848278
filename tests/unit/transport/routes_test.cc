// SPDX-License-Identifier: Apache-2.0
#include "transport/rtp/routes.h"

#include <map>

#include "base/prng.h"
#include "tests/catch.h"
#include "tests/unit/transport/route_parts.h"

// Tests the parts of `Routes` together.

namespace urma::test {
namespace {

using transport::Route;
using transport::Routes;
using transport::RouteTable;

TEST_CASE("a removed address removes the routes with its number, and no others") {
  for (uint8_t ours = 1; ours < 16; ++ours) {
    for (uint8_t theirs = 1; theirs < 16; ++theirs) {
      INFO("ours " << +ours << ", theirs " << +theirs);
      Routes routes(addresses(4, 1), addresses(4, 2), moment(0s));
      ask(routes, 0ms, 10ms);
      for (uint8_t i = 0; i < 4; ++i) routes.windows().left(i, 1000u + i);
      const auto left = [](uint8_t bits, uint8_t host) {
        PathList list = addresses(4, host);
        for (unsigned i = 0; i < 4; ++i) {
          if ((bits >> i & 1) == 0) list.set(i, {});
        }
        return list;
      };
      routes.lead(left(ours, 1), left(theirs, 2), true, moment(10ms));
      unsigned there = 0;
      for (uint8_t i = 0; i < most_paths; ++i) {
        const Route& route = routes[i];
        there += route.there;
        if (route.usable) CHECK(((ours & theirs) >> i & 1) != 0);
        if (route.there) {
          CHECK((ours >> route.local & 1) != 0);
          CHECK(i < routes.count());
        }
        // Bytes in flight stay counted until they arrive, also on a removed or replaced route.
        if (i < 4) CHECK(route.inflight_bytes == 1000u + i);
      }
      // Packets in flight on a removed route are still accepted.
      for (uint8_t i = 0; i < 4; ++i) {
        const Route& route = routes[i];
        const bool another = route.there && (route.local != i || !(route.to == address(i, 2)));
        if (!another) CHECK(routes.table().find(i, address(i, 2)));
      }
      REQUIRE(there >= 1);
      for (int i = 0; i < 10; ++i) CHECK(routes[routes.scheduler().pick(1000)].there);
      CHECK(routes[routes.scheduler().for_answer()].there);
      CHECK(routes[routes.scheduler().way(3)].there);
      ask(routes, 10ms, 100ms);
      for (int i = 0; i < 10; ++i) CHECK(routes[routes.scheduler().pick(1000)].usable);
      routes.lead(addresses(4, 1), addresses(4, 2), true, moment(100ms));
      ask(routes, 100ms, 200ms);
      for (uint8_t i = 0; i < 4; ++i) {
        CHECK(routes[i].usable);
        routes.arrived(i, 1000u + i, moment(190ms), moment(200ms));
        CHECK(routes[i].inflight_bytes == 0);
      }
    }
  }
}

TEST_CASE("routes from the fifth on take memory when they are added, and work like the others") {
  Slab<RouteTable::Four> more(1);
  {
    Routes routes(addresses(4, 1), addresses(4, 2), moment(0s), &more);
    routes.windows().open(*congestion::find_controller("fixed"),
                          {.packet_bytes = 1000, .limit_bytes = 1000});
    ask(routes, 0ms, 10ms);
    CHECK(more.size() == 0);
    CHECK_FALSE(routes[7].there);
    routes.lead(addresses(8, 1), addresses(8, 2), true, moment(10ms));
    CHECK(more.size() == 1);
    ask(routes, 10ms, 20ms);
    for (int i = 0; i < 8; ++i) {
      REQUIRE(routes.scheduler().any_room(1000));
      routes.windows().left(routes.scheduler().pick(1000), 1000);
    }
    CHECK_FALSE(routes.scheduler().any_room(1000));
    for (uint8_t i = 0; i < 8; ++i) CHECK(routes[i].inflight_bytes == 1000);
    // Packets in flight are counted after their routes are removed.
    routes.lead(addresses(2, 1), addresses(2, 2), true, moment(30ms));
    CHECK(routes.count() == 2);
    routes.lose(7, 1000, moment(20ms));
    CHECK(routes[7].inflight_bytes == 0);
    CHECK(routes.table().find(7, address(7, 2)) == 7);
  }
  CHECK(more.size() == 0);
}

TEST_CASE("added and removed routes are reported if they were usable, and only then") {
  Routes routes(addresses(2, 1), addresses(2, 2), moment(0s));
  ask(routes, 0ms, 50ms);
  routes.lead(addresses(3, 1), addresses(3, 2), true, moment(50ms));
  CHECK_FALSE(routes.health().any_news());
  ask(routes, 50ms, 60ms);
  CHECK(routes.health().news().added == 0b100);
  routes.lead(addresses(4, 1), addresses(4, 2), true, moment(60ms));
  routes.lead(addresses(2, 1), addresses(2, 2), true, moment(60ms));
  const auto news = routes.health().news();
  CHECK(news.removed == 0b100);
  CHECK(news.added == 0);
  CHECK(routes.count() == 2);
}

TEST_CASE("addresses are reported over each route in turn, while the channel is active") {
  Routes routes(addresses(3, 1), addresses(3, 2), moment(0s));
  ask(routes, 0ms, 50ms);
  CHECK_FALSE(routes.due_report(moment(50ms)));
  routes.start_report(7, moment(50ms));
  CHECK(routes.report().open());
  std::map<uint8_t, int> told;
  for (Duration now = 50ms; now < 250ms; now += 1ms) {
    routes.health().used(moment(now));
    if (const auto route = routes.due_report(moment(now))) ++told[*route];
  }
  CHECK(told.size() == 3);
  // Reports leave after 10 ms, 20 ms, and then every 40 ms.
  for (const auto& [route, times] : told) CHECK(times <= 5);
  // The deadline has passed, but was noticed only when the channel had become idle.
  CHECK(routes.next_deadline() < moment(300ms));
  for (Duration now = 500ms; now < 1s; now += 1ms) {
    CHECK_FALSE(routes.due_report(moment(now)));
    CHECK_FALSE(routes.health().question(moment(now), 1));
  }
  CHECK(routes.next_deadline() == never);
  routes.health().used(moment(2s));
  CHECK(routes.due_report(moment(2s)));
  routes.report().end();
  CHECK_FALSE(routes.report().open());
}

TEST_CASE("a route on which the peer never answered carries nothing") {
  Routes routes(addresses(3, 1), addresses(3, 2), moment(0s));
  ask(routes, 0ms, 500ms, 0b100);
  for (int i = 0; i < 100; ++i) {
    const uint8_t route = routes.scheduler().pick(1000);
    CHECK(route != 2);
    routes.windows().left(route, 1000);
  }
  CHECK(routes[0].sent == 50);
  // A route that never was usable is not reported as lost.
  CHECK_FALSE(routes.health().any_news());
}

TEST_CASE("a route is lost when its packets are lost and later ones on other routes arrive") {
  Routes routes(addresses(2, 1), addresses(2, 2), moment(0s));
  ask(routes, 0ms, 50ms);
  const auto lose = [&](int count, Duration sent) {
    for (int i = 0; i < count; ++i) {
      routes.windows().left(1, 1000);
      routes.lose(1, 1000, moment(sent));
    }
  };
  // Nothing arrives on the other route either: the peer may be the cause.
  lose(20, 60ms);
  CHECK(routes[1].usable);
  // Packets sent after the last arrival do not count, and an arrival starts the count again.
  routes.windows().left(0, 1000);
  routes.delays().note_arrival(0, moment(70ms), moment(71ms));
  routes.arrived(0, 1000, moment(70ms), moment(71ms));
  lose(20, 75ms);
  lose(5, 65ms);
  CHECK(routes[1].usable);
  routes.windows().left(1, 1000);
  routes.delays().note_arrival(1, moment(66ms), moment(72ms));
  routes.arrived(1, 1000, moment(66ms), moment(72ms));
  lose(5, 67ms);
  CHECK(routes[1].usable);
  lose(1, 67ms);
  CHECK_FALSE(routes[1].usable);
  CHECK(routes[1].inflight_bytes == 0);
  // The lost route is reported after two unanswered questions, and again when it is usable.
  CHECK_FALSE(routes.health().any_news());
  for (Duration now = 73ms; now < 150ms; now += 1ms) {
    routes.delays().note_arrival(0, moment(now), moment(now));
    routes.arrived(0, 0, moment(now), moment(now));
    ask(routes, now, now + 1ms, 0b10);
  }
  CHECK(routes.health().news().lost == 0b10);
  ask(routes, 150ms, 250ms);
  CHECK(routes[1].usable);
  const auto news = routes.health().news();
  CHECK(news.back == 0b10);
  CHECK(news.lost == 0);
}

TEST_CASE("packets of an earlier route with the same number are neither losses nor arrivals") {
  Routes routes(addresses(2, 1), addresses(2, 2), moment(0s));
  ask(routes, 0ms, 50ms);
  routes.windows().open(*congestion::find_controller("aimd"),
                        {.packet_bytes = 1000, .limit_bytes = 1'000'000});
  const auto send = [&](uint8_t route, int count) {
    for (int i = 0; i < count; ++i) routes.windows().left(route, 1000);
  };
  const auto lose = [&](int count, Duration sent) {
    for (int i = 0; i < count; ++i) routes.lose(1, 1000, moment(sent));
  };
  const auto first_arrives = [&](Duration sent) {
    send(0, 1);
    routes.delays().note_arrival(0, moment(sent), moment(sent + 1ms));
    routes.arrived(0, 1000, moment(sent), moment(sent + 1ms));
  };
  // The window of route 1 is small when it is replaced, with 20 packets in flight.
  send(1, 60);
  lose(40, 51ms);
  routes.tell_windows(true, moment(52ms));
  REQUIRE_FALSE(routes.windows().has_room(1, 1000));
  PathList ours = addresses(2, 1);
  for (const Endpoint& other : {Endpoint{}, address(1, 9)}) {
    ours.set(1, other);
    routes.lead(ours, addresses(2, 2), true, moment(60ms));
  }
  ask(routes, 61ms, 62ms);
  REQUIRE(routes[1].usable);
  CHECK(routes[1].inflight_bytes == 20'000);
  CHECK(routes.windows().has_room(1, 1000));
  first_arrives(65ms);
  routes.delays().note_arrival(1, moment(59ms), moment(70ms));
  routes.arrived(1, 1000, moment(59ms), moment(70ms));
  CHECK(routes[1].took == 0ms);
  lose(19, 59ms);
  routes.tell_windows(true, moment(71ms));
  CHECK(routes[1].usable);
  CHECK(routes[1].inflight_bytes == 0);
  CHECK(routes[1].sent == 0);
  CHECK(routes[1].lost == 0);
  // Like any new route it has room for 32 packets, and is suspected when it loses them.
  send(1, 31);
  CHECK(routes.windows().has_room(1, 1000));
  CHECK_FALSE(routes.windows().has_room(1, 1001));
  first_arrives(80ms);
  lose(6, 75ms);
  CHECK_FALSE(routes[1].usable);
  CHECK(routes[1].lost == 6);
}

TEST_CASE(
    "one at a time: a time-out moves the packets to the next route, and they return in order") {
  Routes routes(addresses(3, 1), addresses(3, 2), moment(0s));
  routes.scheduler().use_one_at_a_time(true);
  ask(routes, 0ms, 50ms);
  for (int i = 0; i < 10; ++i) {
    CHECK(routes.scheduler().pick(1000) == 0);
    routes.windows().left(0, 1000);
  }
  // After a time-out one unanswered question is enough.
  routes.health().question_all(moment(60ms));
  ask(routes, 60ms, 64ms, 0b001);
  CHECK(routes[0].usable);
  ask(routes, 64ms, 67ms, 0b001);
  CHECK_FALSE(routes[0].usable);
  CHECK(routes.scheduler().pick(1000) == 1);
  CHECK_FALSE(routes.scheduler().changes_over());
  routes.windows().left(1, 1000);
  ask(routes, 67ms, 200ms);
  REQUIRE(routes[0].usable);
  CHECK(routes.scheduler().pick(1000) == 0);
  CHECK(routes.scheduler().changes_over());
  routes.arrived(1, 1000, moment(67ms), moment(201ms));
  CHECK_FALSE(routes.scheduler().changes_over());
}

TEST_CASE("loss and delay on one route leave the windows of the others as they are") {
  Routes routes(addresses(3, 1), addresses(3, 2), moment(0s));
  ask(routes, 0ms, 10ms);
  routes.windows().open(*congestion::find_controller("aimd"),
                        {.packet_bytes = 1000, .limit_bytes = 1'000'000});
  // Each route has room for 32 packets.
  std::array<int, 3> sent{};
  while (routes.scheduler().any_room(1000)) {
    const uint8_t route = routes.scheduler().pick(1000);
    CHECK(routes.windows().has_room(route, 1000));
    routes.windows().left(route, 1000);
    ++sent[route];
  }
  CHECK(sent == std::array{32, 32, 32});
  // Route 0 loses them, on route 1 half are late, on route 2 all arrive.
  for (int i = 0; i < 32; ++i) {
    routes.lose(0, 1000, moment(10ms));
    routes.delays().note_arrival(1, moment(10ms), moment(i < 16 ? 11ms : 60ms));
    routes.arrived(1, 1000, moment(10ms), moment(60ms));
    routes.delays().note_arrival(2, moment(10ms), moment(11ms));
    routes.arrived(2, 1000, moment(10ms), moment(60ms));
  }
  routes.tell_windows(false, moment(60ms));
  sent = {};
  while (routes.scheduler().any_room(1000)) {
    const uint8_t route = routes.scheduler().pick(1000);
    routes.windows().left(route, 1000);
    ++sent[route];
  }
  CHECK(sent == std::array{22, 32, 64});
}

TEST_CASE("the bytes in flight are what a model says, and the route with the fewest is picked") {
  Prng prng(3);
  Routes routes(addresses(4, 1), addresses(4, 2), moment(0s));
  ask(routes, 0ms, 50ms);
  std::array<uint64_t, 4> model{};
  std::vector<std::pair<uint8_t, uint32_t>> flying;
  for (int i = 0; i < 20'000; ++i) {
    if (flying.empty() || prng.chance(0.52)) {
      const uint8_t route = routes.scheduler().pick(1000);
      REQUIRE(model[route] == *std::min_element(model.begin(), model.end()));
      const auto bytes = static_cast<uint32_t>(prng.between(64, 8192));
      routes.windows().left(route, bytes);
      model[route] += bytes;
      flying.push_back({route, bytes});
    } else {
      const size_t which = prng.below(static_cast<uint32_t>(flying.size()));
      const auto [route, bytes] = flying[which];
      flying.erase(flying.begin() + static_cast<ptrdiff_t>(which));
      model[route] -= bytes;
      prng.chance(0.2) ? routes.lose(route, bytes, moment(50ms), true)
                       : routes.arrived(route, bytes, moment(50ms), moment(50ms));
    }
    for (uint8_t route = 0; route < 4; ++route) {
      REQUIRE(routes[route].inflight_bytes == model[route]);
    }
  }
}

}  // namespace
}  // namespace urma::test
