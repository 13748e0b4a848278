#include "transport/routes.h"

#include <map>

#include "tests/catch.h"
#include "urma/base/prng.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;
using transport::Routes;

Endpoint place(uint8_t net, uint8_t host) { return {ipv4(10, 0, net, host), ub_port}; }

std::vector<Endpoint> places(uint8_t count, uint8_t host) {
  std::vector<Endpoint> out;
  for (uint8_t i = 0; i < count; ++i) out.push_back(place(i, host));
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
      const Routes routes(places(ours, 1), places(theirs, 2), at(0s));
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

TEST_CASE("a path that nobody answers on carries nothing, whoever named it") {
  Routes routes(places(3, 1), places(3, 2), at(0s));
  ask(routes, 0ms, 500ms, 0b100);
  for (int i = 0; i < 100; ++i) {
    const uint8_t route = routes.pick();
    CHECK(route != 2);
    routes.left(route, 1000);
  }
  CHECK(routes[0].sent == 50);
  // Nothing is lost that never was.
  CHECK_FALSE(routes.any_news());
}

TEST_CASE("only whoever was given the nonce of the last question proves a path") {
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

TEST_CASE("questions: more and more rarely where nobody answers, none where nothing happens") {
  Routes routes(places(2, 1), places(2, 2), at(0s));
  std::map<uint8_t, int> asked;
  for (Duration now{}; now < 10s; now += 1ms) {
    if (now < 1s) routes.used(at(now));
    while (const auto question = routes.question(at(now), 1)) ++asked[question->route];
  }
  // 5, 10, 20, and each 40 ms; then 200 ms more.
  for (const auto& [route, times] : asked) CHECK((times > 20 && times < 35));
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
  // What left before is no sign, and one that arrives makes good what was before.
  routes.left(0, 1000);
  routes.note_sent_of_arrived(0, at(70ms), at(71ms));
  routes.arrived(0, 1000, at(71ms));
  lose(20, 75ms);
  lose(5, 65ms);
  CHECK(routes[1].usable);
  routes.left(1, 1000);
  routes.note_sent_of_arrived(1, at(66ms), at(72ms));
  routes.arrived(1, 1000, at(72ms));
  lose(5, 67ms);
  CHECK(routes[1].usable);
  lose(1, 67ms);
  CHECK_FALSE(routes[1].usable);
  CHECK(routes[1].inflight_bytes == 0);
  // It is said when two questions were in vain, too; and when it is back.
  CHECK_FALSE(routes.any_news());
  for (Duration now = 73ms; now < 150ms; now += 1ms) {
    routes.note_sent_of_arrived(0, at(now), at(now));
    routes.arrived(0, 0, at(now));
    ask(routes, now, now + 1ms, 0b10);
  }
  CHECK(routes.news().lost == 0b10);
  ask(routes, 150ms, 250ms);
  CHECK(routes[1].usable);
  const auto news = routes.news();
  CHECK(news.back == 0b10);
  CHECK(news.lost == 0);
}

TEST_CASE("a path on which little is sent is lost when two questions are in vain") {
  Routes routes(places(2, 1), places(2, 2), at(0s));
  ask(routes, 0ms, 50ms);
  ask(routes, 50ms, 400ms, 0b01);
  CHECK_FALSE(routes[0].usable);
  CHECK(routes.news().lost == 0b01);
  // Where nobody answers at all, it is the peer.
  ask(routes, 400ms, 1s, 0b11);
  CHECK(routes[1].usable);
  CHECK_FALSE(routes.any_news());
}

TEST_CASE("the account of what is in flight is what a model says, and the least is picked") {
  Prng prng(3);
  Routes routes(places(4, 1), places(4, 2), at(0s));
  ask(routes, 0ms, 50ms);
  std::array<uint64_t, 4> model{};
  std::vector<std::pair<uint8_t, uint32_t>> flying;
  for (int i = 0; i < 20'000; ++i) {
    if (flying.empty() || prng.chance(0.52)) {
      const uint8_t route = routes.pick();
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
      prng.chance(0.2) ? routes.lose(route, bytes, Time{}) : routes.arrived(route, bytes, at(50ms));
    }
    for (uint8_t route = 0; route < 4; ++route) {
      REQUIRE(routes[route].inflight_bytes == model[route]);
    }
  }
}

}  // namespace
}  // namespace urma::test
