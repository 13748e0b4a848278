// SPDX-License-Identifier: Apache-2.0
#include "tests/catch.h"
#include "tests/unit/transport/route_parts.h"

namespace urma::test {
namespace {

using transport::RouteScheduler;
using transport::RouteWindows;

// A scheduler of this many routes; the bits of `usable` say which of them are usable.
struct Scheduler : TableOf {
  Scheduler(uint8_t count, uint8_t usable) : TableOf(count) {
    for (uint8_t i = 0; i < count; ++i) set_usable(i, (usable >> i & 1) != 0);
  }
  void set_usable(uint8_t route, bool usable) {
    table[route].usable = usable;
    table[route].known = table[route].known || usable;
  }

  RouteWindows windows{table};
  RouteScheduler scheduler{table, windows};
};

TEST_CASE("the usable route with the least in flight is picked, and equal ones in turn") {
  Scheduler with(3, 0b101);
  for (const uint8_t expected : std::array<uint8_t, 4>{0, 2, 0, 2}) {
    CHECK(with.scheduler.pick(1000) == expected);
    with.windows.left(expected, 1000);
  }
  with.windows.left(0, 5000);
  for (int i = 0; i < 3; ++i) CHECK(with.scheduler.pick(1000) == 2);
  with.windows.plan(2, 6000);
  CHECK(with.scheduler.pick(1000) == 0);
}

TEST_CASE("a route with room is preferred to one with less in flight") {
  Scheduler with(2, 0b11);
  with.windows.open(*congestion::find_controller("fixed"),
                    {.packet_bytes = 1000, .limit_bytes = 10'000});
  with.windows.left(0, 9000);
  with.windows.left(1, 8000);
  with.windows.plan(1, 1500);
  CHECK(with.scheduler.pick(1000) == 0);
  CHECK(with.scheduler.any_room(1000));
  CHECK_FALSE(with.scheduler.any_room(1001));
}

TEST_CASE(
    "nothing is sent before the peer answers; later a known route is used if none is usable") {
  Scheduler with(3, 0);
  CHECK_FALSE(with.scheduler.any_room(1));
  with.set_usable(1, true);
  with.set_usable(1, false);
  CHECK(with.scheduler.any_room(1000));
  for (int i = 0; i < 3; ++i) CHECK(with.scheduler.pick(1000) == 1);
  CHECK(with.scheduler.for_answer() == 1);
}

TEST_CASE("one at a time: the first usable route, and a change waits for what is in flight") {
  Scheduler with(3, 0b111);
  with.scheduler.use_one_at_a_time(true);
  CHECK(with.scheduler.one_at_a_time());
  for (int i = 0; i < 3; ++i) CHECK(with.scheduler.pick(1000) == 0);
  with.set_usable(0, false);
  CHECK(with.scheduler.pick(1000) == 1);
  CHECK_FALSE(with.scheduler.changes_over());
  with.windows.left(1, 1000);
  with.set_usable(0, true);
  CHECK(with.scheduler.pick(1000) == 0);
  CHECK(with.scheduler.changes_over());
  with.windows.arrived(1, 1000, moment(0s));
  CHECK_FALSE(with.scheduler.changes_over());
  // Other modes never wait.
  with.windows.left(1, 1000);
  with.scheduler.use_one_at_a_time(false);
  CHECK_FALSE(with.scheduler.changes_over());
}

TEST_CASE("an acknowledgement takes the route of the last packet, if that is usable") {
  Scheduler with(3, 0b111);
  with.scheduler.came(2);
  CHECK(with.scheduler.for_answer() == 2);
  with.set_usable(2, false);
  CHECK(with.scheduler.for_answer() == 0);
}

// A controller whose packets have to be 10 us apart.
class TenMicroseconds final : public congestion::Controller {
 public:
  congestion::Signal request(const congestion::Sent& packet) override {
    next_ = packet.now + 10us;
    inflight_bytes = packet.inflight_bytes;
    return {};
  }
  void handle(const congestion::Acknowledged&) override {}
  void handle(const congestion::Lost&) override {}
  void handle(const congestion::Notified&) override {}
  void handle(const congestion::Spurious&) override {}
  congestion::Allowance allowance(Time) const override { return {window_bytes(), next_}; }
  uint64_t window_bytes() const override { return 3000; }

  static inline uint64_t inflight_bytes = 0;  // as the last request said

 private:
  Time next_ = Time::min();
};

constexpr congestion::ControllerKind ten_microseconds{
    .name = "ten_microseconds",
    .summary = "",
    .make = [](void* storage, const congestion::Settings&) -> congestion::Controller* {
      return new (storage) TenMicroseconds;
    },
    .paces = true};

congestion::Sent packet_at(Time now, uint32_t bytes) {
  return {.now = now, .number = 0, .bytes = bytes, .again = false, .inflight_bytes = 0};
}

TEST_CASE("a route is not used before its departure, and the next departure is one with room") {
  Scheduler with(2, 0b11);
  with.windows.open(ten_microseconds, {});
  const auto send = [&](Duration at) {
    const Time now = moment(at);
    REQUIRE(with.scheduler.any_room(1000, now));
    const uint8_t route = with.scheduler.pick(1000, now);
    with.windows.left(route, 1000);
    with.windows.depart(route, packet_at(now, 1000));
    return route;
  };
  CHECK(send(0us) == 0);
  CHECK(TenMicroseconds::inflight_bytes == 0);
  CHECK(send(2us) == 1);
  CHECK_FALSE(with.scheduler.any_room(1000, moment(9us)));
  CHECK_FALSE(with.scheduler.may_depart(moment(9us)));
  CHECK(with.scheduler.any_room(1000));
  CHECK(with.scheduler.departure(1000) == moment(10us));
  CHECK(send(10us) == 0);
  CHECK(TenMicroseconds::inflight_bytes == 1000);
  CHECK(send(12us) == 1);
  CHECK(send(20us) == 0);  // its window is full now
  CHECK(with.scheduler.departure(1000) == moment(22us));
  CHECK(with.scheduler.departure(0) == moment(22us));
  CHECK(send(22us) == 1);
  CHECK(with.scheduler.departure(1000) == never);
  CHECK(with.scheduler.departure(0) == moment(30us));
  CHECK(with.scheduler.may_depart(moment(30us)));
  CHECK_FALSE(with.scheduler.any_room(1000, moment(30us)));
  // A question, which leaves although windows are full, takes the route that may depart.
  CHECK(with.scheduler.pick(1000, moment(30us)) == 0);
}

TEST_CASE("a channel that changes over does not wait for the departure of its old route") {
  Scheduler with(2, 0b11);
  with.scheduler.use_one_at_a_time(true);
  with.windows.open(ten_microseconds, {});
  with.windows.depart(0, packet_at(moment(0us), 0));
  CHECK_FALSE(with.scheduler.may_depart(moment(1us)));
  with.set_usable(0, false);
  CHECK(with.scheduler.may_depart(moment(1us)));
  CHECK(with.scheduler.any_room(1000, moment(1us)));
  // Neither does a route that replaces it, nor a new channel.
  with.set_usable(0, true);
  with.windows.add(0);
  CHECK(with.scheduler.may_depart(moment(1us)));
  with.windows.depart(0, packet_at(moment(1us), 0));
  with.windows.open(ten_microseconds, {});
  CHECK(with.scheduler.may_depart(moment(2us)));
}

TEST_CASE("tries of a message take usable routes, then known ones, and each fourth a new one") {
  Scheduler with(4, 0b0011);
  with.set_usable(0, false);
  // Route 1 is usable, route 0 was usable once, routes 2 and 3 never were.
  const auto way = [&](unsigned number) { return with.scheduler.way(number); };
  CHECK(way(0) == 1);
  CHECK(way(1) == 0);
  CHECK(way(2) == 1);
  CHECK(way(3) == 2);
  CHECK(way(7) == 3);
  CHECK(way(11) == 2);
  for (unsigned number = 0; number < 8; ++number) CHECK(with.scheduler.usable_way(number) == 1);
  with.set_usable(1, false);
  CHECK(with.scheduler.usable_way(3) == 2);
  Scheduler unproven(3, 0);
  for (unsigned number = 0; number < 6; ++number) {
    CHECK(unproven.scheduler.way(number) == number % 3);
  }
}

}  // namespace
}  // namespace urma::test
