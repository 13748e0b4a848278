// SPDX-License-Identifier: Apache-2.0
#include <map>

#include "tests/catch.h"
#include "tests/unit/transport/route_parts.h"

namespace urma::test {
namespace {

using transport::RouteHealth;
using transport::RouteTable;

// A table with this many routes, on which questions are due immediately.
struct Health : TableOf {
  explicit Health(uint8_t count) : TableOf(count) {
    for (uint8_t i = 0; i < count; ++i) health.add(i, false, moment(0s));
    health.used(moment(0s));
  }

  RouteHealth health{table};
};

TEST_CASE("a route becomes usable only by an answer with the nonce of its last question") {
  Health with(2);
  RouteHealth& health = with.health;
  transport::AllPathTotals totals{};
  with.table.count_in(totals);
  const auto first = health.question(moment(0s), 41);
  REQUIRE(first);
  CHECK_FALSE(health.answered(first->route, 42, moment(1ms)));
  CHECK_FALSE(health.answered(first->route, 0, moment(1ms)));
  CHECK_FALSE(health.answered(7, 41, moment(1ms)));
  CHECK_FALSE(with.table[first->route].usable);
  CHECK(health.answered(first->route, 41, moment(1ms)));
  CHECK(with.table[first->route].usable);
  CHECK(with.table[first->route].rtt == 1ms);
  CHECK(totals[first->route].rtt == 1ms);
  CHECK_FALSE(health.answered(first->route, 41, moment(2ms)));
}

TEST_CASE("a route on which the peer never answered stays unusable, and is not reported as lost") {
  Health with(3);
  ask(with.health, 0ms, 500ms, 0b100);
  CHECK(with.table[0].usable);
  CHECK(with.table[1].usable);
  CHECK_FALSE(with.table[2].usable);
  CHECK_FALSE(with.health.any_news());
}

TEST_CASE("unanswered questions are repeated at growing intervals, and never on an idle channel") {
  Health with(2);
  std::map<uint8_t, int> asked;
  for (Duration now{}; now < 10s; now += 1ms) {
    if (now < 1s) with.health.used(moment(now));
    while (const auto question = with.health.question(moment(now), 1)) ++asked[question->route];
  }
  // After 5, 10, 20 and so on until 640 ms; the channel is active for 200 ms more.
  CHECK(asked.size() == 2);
  for (const auto& [route, times] : asked) CHECK((times > 6 && times < 10));
  CHECK(with.health.next_deadline() == never);
  with.health.used(moment(10s));
  CHECK(with.health.next_deadline() < moment(10s));
}

TEST_CASE("a route on which little is sent is lost after two unanswered questions") {
  Health with(2);
  RouteHealth& health = with.health;
  ask(health, 0ms, 50ms);
  ask(health, 50ms, 400ms, 0b01);
  CHECK_FALSE(with.table[0].usable);
  CHECK(health.news().lost == 0b01);
  // If no route answers, the peer is the cause.
  ask(health, 400ms, 1s, 0b11);
  CHECK(with.table[1].usable);
  CHECK_FALSE(health.any_news());
  ask(health, 1s, 1200ms);
  CHECK(with.table[0].usable);
  CHECK(health.news().back == 0b01);
}

TEST_CASE("after a time-out one unanswered question is enough") {
  Health with(2);
  RouteHealth& health = with.health;
  ask(health, 0ms, 50ms);
  health.question_all(moment(60ms));
  ask(health, 60ms, 64ms, 0b01);
  CHECK(with.table[0].usable);
  ask(health, 64ms, 67ms, 0b01);
  CHECK_FALSE(with.table[0].usable);
  CHECK(with.table[1].usable);
}

TEST_CASE("a new channel uses no route before it has answered again") {
  Health with(2);
  ask(with.health, 0ms, 50ms);
  with.health.doubt_all(moment(60ms));
  CHECK_FALSE(with.table[0].usable);
  CHECK(with.table[0].known);
  with.health.prove(1, moment(60ms));
  CHECK(with.table[1].usable);
  ask(with.health, 60ms, 61ms);
  CHECK(with.table[0].usable);
  CHECK_FALSE(with.health.any_news());
}

TEST_CASE("six packets lost in a row raise a doubt, if others carried what was sent later") {
  Health with(2);
  RouteHealth& health = with.health;
  ask(health, 0ms, 50ms);
  const auto lose = [&](int count, Duration sent) {
    for (int i = 0; i < count; ++i) health.note_lost(1, moment(sent));
  };
  lose(20, 60ms);  // the other route has no arrivals either
  with.table[0].latest.note(moment(70ms), moment(71ms));
  lose(20, 75ms);  // these were sent after the last arrival
  lose(5, 65ms);
  health.note_arrived(1, moment(66ms), moment(72ms));
  lose(5, 67ms);
  CHECK(with.table[1].usable);
  lose(1, 67ms);
  CHECK_FALSE(with.table[1].usable);
  // The route is reported as lost only when questions are not answered either.
  CHECK_FALSE(health.any_news());
  CHECK(health.next_deadline() <= moment(72ms));
}

TEST_CASE("a new route is reported once it is usable, and a removed one if it ever was") {
  Health with(2);
  RouteHealth& health = with.health;
  ask(health, 0ms, 50ms);
  with.table.lead(addresses(4, 1), addresses(4, 2), moment(50ms), moment(50ms));
  health.add(2, true, moment(50ms));
  health.add(3, true, moment(50ms));
  CHECK_FALSE(health.any_news());
  ask(health, 50ms, 60ms, 0b1000);
  CHECK(health.news().added == 0b0100);
  health.remove(2);
  health.remove(3);
  const RouteHealth::News news = health.news();
  CHECK(news.removed == 0b0100);
  CHECK(news.added == 0);
  CHECK_FALSE(health.any_news());
}

}  // namespace
}  // namespace urma::test
