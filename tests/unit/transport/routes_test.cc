#include "transport/rtp/routes.h"

#include <map>

#include "base/prng.h"
#include "congestion/controller.h"
#include "tests/catch.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;
using transport::Routes;

Endpoint place(uint8_t net, uint8_t host) { return {ipv4(10, 0, net, host), ub_port}; }

PathList places(uint8_t count, uint8_t host) {
  PathList out;
  for (uint8_t i = 0; i < count; ++i) out.set(i, place(i, host));
  return out;
}

Time at(Duration since) { return Time{} + 1s + since; }

// Answers each question that is asked until `until`, but for those of these routes.
void ask(Routes& routes, Duration from, Duration until, uint8_t deaf = 0) {
  for (Duration now = from; now < until; now += 1ms) {
    routes.used(at(now));
    uint64_t nonce = static_cast<uint64_t>(now.count()) + 1;
    while (const auto question = routes.question(at(now), nonce++)) {
      if ((deaf >> question->route & 1) == 0) {
        routes.answered(question->route, question->nonce, at(now + 100us));
      }
    }
  }
}

TEST_CASE("the n-th path leads from the n-th of ours to the n-th of theirs, and begins again") {
  for (uint8_t ours = 1; ours <= 8; ++ours) {
    for (uint8_t theirs = 1; theirs <= 8; ++theirs) {
      Slab<Routes::Four> more(1);
      const Routes routes(places(ours, 1), places(theirs, 2), at(0s), &more);
      CHECK(more.size() == (std::max(ours, theirs) > 4 ? 1 : 0));
      REQUIRE(routes.count() == std::max(ours, theirs));
      for (uint8_t i = 0; i < routes.count(); ++i) {
        CHECK(routes[i].local == i % ours);
        CHECK(routes[i].to == place(i % theirs, 2));
        CHECK_FALSE(routes[i].usable);
        CHECK(routes.find(i % ours, place(i % theirs, 2)) == i);
      }
      CHECK_FALSE(routes.find(0, place(0, 3)));
    }
  }
}

TEST_CASE("a place that is taken away takes the paths of its number, and the others stay") {
  for (uint8_t ours = 1; ours < 16; ++ours) {
    for (uint8_t theirs = 1; theirs < 16; ++theirs) {
      INFO("ours " << +ours << ", theirs " << +theirs);
      Routes routes(places(4, 1), places(4, 2), at(0s));
      ask(routes, 0ms, 10ms);
      for (uint8_t i = 0; i < 4; ++i) routes.left(i, 1000u + i);
      const auto left = [](uint8_t bits, uint8_t host) {
        PathList list = places(4, host);
        for (unsigned i = 0; i < 4; ++i) {
          if ((bits >> i & 1) == 0) list.set(i, {});
        }
        return list;
      };
      routes.lead(left(ours, 1), left(theirs, 2), true, at(10ms));
      unsigned there = 0;
      for (uint8_t i = 0; i < most_paths; ++i) {
        const Routes::Route& route = routes[i];
        there += route.there;
        if (route.usable) CHECK(((ours & theirs) >> i & 1) != 0);
        if (route.there) {
          CHECK((ours >> route.local & 1) != 0);
          CHECK(i < routes.count());
        }
        // Whatever becomes of it, what is under way is counted until it arrives.
        if (i < 4) CHECK(route.inflight_bytes == 1000u + i);
      }
      // Packets under way may arrive.
      for (uint8_t i = 0; i < 4; ++i) {
        const Routes::Route& route = routes[i];
        const bool another = route.there && (route.local != i || !(route.to == place(i, 2)));
        if (!another) CHECK(routes.find(i, place(i, 2)));
      }
      REQUIRE(there >= 1);
      for (int i = 0; i < 10; ++i) CHECK(routes[routes.pick(1000)].there);
      CHECK(routes[routes.for_answer()].there);
      CHECK(routes[routes.way(3)].there);
      ask(routes, 10ms, 100ms);
      for (int i = 0; i < 10; ++i) CHECK(routes[routes.pick(1000)].usable);
      routes.lead(places(4, 1), places(4, 2), true, at(100ms));
      ask(routes, 100ms, 200ms);
      for (uint8_t i = 0; i < 4; ++i) {
        CHECK(routes[i].usable);
        routes.arrived(i, 1000u + i, at(190ms), at(200ms));
        CHECK(routes[i].inflight_bytes == 0);
      }
    }
  }
}

TEST_CASE("paths from the fifth on take memory when they come, and work like the others") {
  Slab<Routes::Four> more(1);
  {
    Routes routes(places(4, 1), places(4, 2), at(0s), &more);
    routes.open_windows(*congestion::find_controller("fixed"),
                        {.packet_bytes = 1000, .limit_bytes = 1000});
    ask(routes, 0ms, 10ms);
    CHECK(more.size() == 0);
    CHECK_FALSE(routes[7].there);
    routes.lead(places(8, 1), places(8, 2), true, at(10ms));
    CHECK(more.size() == 1);
    ask(routes, 10ms, 20ms);
    for (int i = 0; i < 8; ++i) {
      REQUIRE(routes.any_room(1000));
      routes.left(routes.pick(1000), 1000);
    }
    CHECK_FALSE(routes.any_room(1000));
    for (uint8_t i = 0; i < 8; ++i) CHECK(routes[i].inflight_bytes == 1000);
    // Packets under way on removed paths are still counted.
    routes.lead(places(2, 1), places(2, 2), true, at(30ms));
    CHECK(routes.count() == 2);
    routes.lose(7, 1000, at(20ms));
    CHECK(routes[7].inflight_bytes == 0);
    CHECK(routes.find(7, place(7, 2)) == 7);
  }
  CHECK(more.size() == 0);
}

TEST_CASE("paths that come and go are told of when they carry, and those that never did are not") {
  Routes routes(places(2, 1), places(2, 2), at(0s));
  ask(routes, 0ms, 50ms);
  routes.lead(places(3, 1), places(3, 2), true, at(50ms));
  CHECK_FALSE(routes.any_news());
  ask(routes, 50ms, 60ms);
  CHECK(routes.news().added == 0b100);
  routes.lead(places(4, 1), places(4, 2), true, at(60ms));
  routes.lead(places(2, 1), places(2, 2), true, at(60ms));
  const auto news = routes.news();
  CHECK(news.removed == 0b100);
  CHECK(news.added == 0);
  CHECK(routes.count() == 2);
}

TEST_CASE("a peer is told over one path after another, while something happens, until it answers") {
  Routes routes(places(3, 1), places(3, 2), at(0s));
  ask(routes, 0ms, 50ms);
  CHECK_FALSE(routes.tells(at(50ms)));
  routes.tell(7, at(50ms));
  CHECK(routes.telling());
  std::map<uint8_t, int> told;
  for (Duration now = 50ms; now < 250ms; now += 1ms) {
    routes.used(at(now));
    if (const auto route = routes.tells(at(now))) ++told[*route];
  }
  CHECK(told.size() == 3);
  // 10, 20, and each 40 ms.
  for (const auto& [route, times] : told) CHECK(times <= 5);
  // A peer that was late is not notified any longer.
  CHECK(routes.next_deadline() < at(300ms));
  for (Duration now = 500ms; now < 1s; now += 1ms) {
    CHECK_FALSE(routes.tells(at(now)));
    CHECK_FALSE(routes.question(at(now), 1));
  }
  CHECK(routes.next_deadline() == never);
  routes.used(at(2s));
  CHECK(routes.tells(at(2s)));
  routes.told();
  CHECK_FALSE(routes.telling());
}

TEST_CASE("which of two lists is newer goes round") {
  PathList list;
  for (const uint32_t number : {0u, 5u, PathList::number_mask}) {
    list.number = (number + 1) & PathList::number_mask;
    CHECK(list.newer_than(number));
    list.number = number;
    CHECK_FALSE(list.newer_than(number));
    CHECK_FALSE(list.newer_than((number + 1) & PathList::number_mask));
  }
}

TEST_CASE("a path without answers carries nothing, whichever end named it") {
  Routes routes(places(3, 1), places(3, 2), at(0s));
  ask(routes, 0ms, 500ms, 0b100);
  for (int i = 0; i < 100; ++i) {
    const uint8_t route = routes.pick(1000);
    CHECK(route != 2);
    routes.left(route, 1000);
  }
  CHECK(routes[0].sent == 50);
  // Nothing is lost that never was.
  CHECK_FALSE(routes.any_news());
}

TEST_CASE("only the receiver of the last question's nonce can prove a path") {
  Routes routes(places(2, 1), places(2, 2), at(0s));
  const auto first = routes.question(at(0s), 41);
  REQUIRE(first);
  routes.answered(first->route, 42, at(1ms));
  routes.answered(first->route, 0, at(1ms));
  routes.answered(7, 41, at(1ms));
  CHECK_FALSE(routes[first->route].usable);
  routes.answered(first->route, 41, at(1ms));
  CHECK(routes[first->route].usable);
  CHECK(routes[first->route].rtt == 1ms);
}

TEST_CASE("questions: less and less often where no answer comes, none where nothing happens") {
  Routes routes(places(2, 1), places(2, 2), at(0s));
  std::map<uint8_t, int> asked;
  for (Duration now{}; now < 10s; now += 1ms) {
    if (now < 1s) routes.used(at(now));
    while (const auto question = routes.question(at(now), 1)) ++asked[question->route];
  }
  // 5, 10, 20 and so on until 640 ms; then 200 ms more.
  for (const auto& [route, times] : asked) CHECK((times > 6 && times < 10));
  CHECK(routes.next_deadline() == never);
}

TEST_CASE("a path is lost when its packets are, and what left later elsewhere arrives") {
  Routes routes(places(2, 1), places(2, 2), at(0s));
  ask(routes, 0ms, 50ms);
  const auto lose = [&](int count, Duration sent) {
    for (int i = 0; i < count; ++i) {
      routes.left(1, 1000);
      routes.lose(1, 1000, at(sent));
    }
  };
  // Both stand still: nothing is known of either.
  lose(20, 60ms);
  CHECK(routes[1].usable);
  // A packet that left before the change is not a sign, and one that arrives clears what was
  // counted before.
  routes.left(0, 1000);
  routes.note_sent_of_arrived(0, at(70ms), at(71ms));
  routes.arrived(0, 1000, at(70ms), at(71ms));
  lose(20, 75ms);
  lose(5, 65ms);
  CHECK(routes[1].usable);
  routes.left(1, 1000);
  routes.note_sent_of_arrived(1, at(66ms), at(72ms));
  routes.arrived(1, 1000, at(66ms), at(72ms));
  lose(5, 67ms);
  CHECK(routes[1].usable);
  lose(1, 67ms);
  CHECK_FALSE(routes[1].usable);
  CHECK(routes[1].inflight_bytes == 0);
  // It is said when two questions were in vain, too; and when it is back.
  CHECK_FALSE(routes.any_news());
  for (Duration now = 73ms; now < 150ms; now += 1ms) {
    routes.note_sent_of_arrived(0, at(now), at(now));
    routes.arrived(0, 0, at(now), at(now));
    ask(routes, now, now + 1ms, 0b10);
  }
  CHECK(routes.news().lost == 0b10);
  ask(routes, 150ms, 250ms);
  CHECK(routes[1].usable);
  const auto news = routes.news();
  CHECK(news.back == 0b10);
  CHECK(news.lost == 0);
}

TEST_CASE("what left before a path took its place is neither its loss nor its arrival") {
  Routes routes(places(2, 1), places(2, 2), at(0s));
  ask(routes, 0ms, 50ms);
  routes.open_windows(*congestion::find_controller("aimd"),
                      {.packet_bytes = 1000, .limit_bytes = 1'000'000});
  const auto send = [&](uint8_t route, int count) {
    for (int i = 0; i < count; ++i) routes.left(route, 1000);
  };
  const auto lose = [&](int count, Duration sent) {
    for (int i = 0; i < count; ++i) routes.lose(1, 1000, at(sent));
  };
  const auto first_arrives = [&](Duration sent) {
    send(0, 1);
    routes.note_sent_of_arrived(0, at(sent), at(sent + 1ms));
    routes.arrived(0, 1000, at(sent), at(sent + 1ms));
  };
  // Its window is small when it goes, with 20 packets on their way.
  send(1, 60);
  lose(40, 51ms);
  routes.tell_windows(true, at(52ms));
  REQUIRE_FALSE(routes.has_room(1, 1000));
  PathList ours = places(2, 1);
  for (const Endpoint& other : {Endpoint{}, place(1, 9)}) {
    ours.set(1, other);
    routes.lead(ours, places(2, 2), true, at(60ms));
  }
  ask(routes, 61ms, 62ms);
  REQUIRE(routes[1].usable);
  CHECK(routes[1].inflight_bytes == 20'000);
  CHECK(routes.has_room(1, 1000));
  first_arrives(65ms);
  routes.note_sent_of_arrived(1, at(59ms), at(70ms));
  routes.arrived(1, 1000, at(59ms), at(70ms));
  CHECK(routes[1].took == 0ms);
  lose(19, 59ms);
  routes.tell_windows(true, at(71ms));
  CHECK(routes[1].usable);
  CHECK(routes[1].inflight_bytes == 0);
  CHECK(routes[1].sent == 0);
  CHECK(routes[1].lost == 0);
  // As any new one it has room for 32, and is left when it loses them.
  send(1, 31);
  CHECK(routes.has_room(1, 1000));
  CHECK_FALSE(routes.has_room(1, 1001));
  first_arrives(80ms);
  lose(6, 75ms);
  CHECK_FALSE(routes[1].usable);
  CHECK(routes[1].lost == 6);
}

TEST_CASE("a path on which little is sent is lost when two questions are in vain") {
  Routes routes(places(2, 1), places(2, 2), at(0s));
  ask(routes, 0ms, 50ms);
  ask(routes, 50ms, 400ms, 0b01);
  CHECK_FALSE(routes[0].usable);
  CHECK(routes.news().lost == 0b01);
  // If no path answers at all, the peer is at fault.
  ask(routes, 400ms, 1s, 0b11);
  CHECK(routes[1].usable);
  CHECK_FALSE(routes.any_news());
}

TEST_CASE(
    "one at a time: the first that can be used, and a change over waits for what is under way") {
  Routes routes(places(3, 1), places(3, 2), at(0s));
  routes.use_one_at_a_time(true);
  ask(routes, 0ms, 50ms);
  for (int i = 0; i < 10; ++i) {
    CHECK(routes.pick(1000) == 0);
    routes.left(0, 1000);
  }
  // A time-out: all are asked at once, and one question in vain is enough to go elsewhere.
  routes.question_all(at(60ms));
  ask(routes, 60ms, 64ms, 0b001);
  CHECK(routes[0].usable);
  ask(routes, 64ms, 67ms, 0b001);
  CHECK_FALSE(routes[0].usable);
  CHECK(routes.pick(1000) == 1);
  CHECK_FALSE(routes.changes_over());
  routes.left(1, 1000);
  ask(routes, 67ms, 200ms);
  REQUIRE(routes[0].usable);
  CHECK(routes.pick(1000) == 0);
  CHECK(routes.changes_over());
  routes.arrived(1, 1000, at(67ms), at(201ms));
  CHECK_FALSE(routes.changes_over());
}

TEST_CASE("what is lost or waits on one path shrinks the window of that one, and of no other") {
  Routes routes(places(3, 1), places(3, 2), at(0s));
  ask(routes, 0ms, 10ms);
  routes.open_windows(*congestion::find_controller("aimd"),
                      {.packet_bytes = 1000, .limit_bytes = 1'000'000});
  // At most 32 packets on each.
  std::array<int, 3> sent{};
  while (routes.any_room(1000)) {
    const uint8_t route = routes.pick(1000);
    CHECK(routes.has_room(route, 1000));
    routes.left(route, 1000);
    ++sent[route];
  }
  CHECK(sent == std::array{32, 32, 32});
  // One loses them, one has them late, the third is as it was.
  for (int i = 0; i < 32; ++i) {
    routes.lose(0, 1000, at(10ms));
    routes.note_sent_of_arrived(1, at(10ms), at(i < 16 ? 11ms : 60ms));
    routes.arrived(1, 1000, at(10ms), at(60ms));
    routes.note_sent_of_arrived(2, at(10ms), at(11ms));
    routes.arrived(2, 1000, at(10ms), at(60ms));
  }
  routes.tell_windows(false, at(60ms));
  sent = {};
  while (routes.any_room(1000)) {
    const uint8_t route = routes.pick(1000);
    routes.left(route, 1000);
    ++sent[route];
  }
  CHECK(sent == std::array{22, 32, 64});
  // The lost part of a burst counts before it leaves.
  routes.arrived(2, 10'000, at(60ms), at(61ms));
  routes.plan(2, 9'000);
  CHECK(routes.has_room(2, 1000));
  CHECK_FALSE(routes.has_room(2, 1001));
  routes.begin_plan();
  CHECK(routes.has_room(2, 10'000));
  // Where nothing is in flight there is room, whatever the window.
  Routes idle(places(2, 1), places(2, 2), at(0s));
  ask(idle, 0ms, 10ms);
  idle.open_windows(*congestion::find_controller("fixed"),
                    {.packet_bytes = 1000, .limit_bytes = 1});
  CHECK(idle.any_room(9000));
}

TEST_CASE("what leaves on a slower path may come so much later than on the fastest, twice") {
  Routes routes(places(2, 1), places(2, 2), at(0s));
  ask(routes, 0ms, 10ms);
  routes.note_sent_of_arrived(0, at(10ms), at(11ms));
  routes.note_sent_of_arrived(1, at(10ms), at(15ms));
  routes.judge(1ms, at(15ms));
  CHECK(routes.later(0) == 0ms);
  CHECK(routes.later(1) == 8ms);
}

TEST_CASE("the account of what is in flight is what a model says, and the least is picked") {
  Prng prng(3);
  Routes routes(places(4, 1), places(4, 2), at(0s));
  ask(routes, 0ms, 50ms);
  std::array<uint64_t, 4> model{};
  std::vector<std::pair<uint8_t, uint32_t>> flying;
  for (int i = 0; i < 20'000; ++i) {
    if (flying.empty() || prng.chance(0.52)) {
      const uint8_t route = routes.pick(1000);
      REQUIRE(model[route] == *std::min_element(model.begin(), model.end()));
      const auto bytes = static_cast<uint32_t>(prng.between(64, 8192));
      routes.left(route, bytes);
      model[route] += bytes;
      flying.push_back({route, bytes});
    } else {
      const size_t which = prng.below(static_cast<uint32_t>(flying.size()));
      const auto [route, bytes] = flying[which];
      flying.erase(flying.begin() + static_cast<ptrdiff_t>(which));
      model[route] -= bytes;
      prng.chance(0.2) ? routes.lose(route, bytes, at(50ms), true)
                       : routes.arrived(route, bytes, at(50ms), at(50ms));
    }
    for (uint8_t route = 0; route < 4; ++route) {
      REQUIRE(routes[route].inflight_bytes == model[route]);
    }
  }
}

}  // namespace
}  // namespace urma::test
