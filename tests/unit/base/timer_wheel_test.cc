// SPDX-License-Identifier: Apache-2.0
#include "base/timer_wheel.h"

#include <algorithm>
#include <map>
#include <vector>

#include "base/prng.h"
#include "tests/catch.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;

constexpr uint32_t timers = 48;

// The model: a deadline for each owner, and the owners by deadline.
class WheelModel {
 public:
  void arm(uint32_t timer, Time deadline) {
    disarm(timer);
    if (deadline != never) place_[timer] = by_deadline_.emplace(deadline, timer);
  }
  void disarm(uint32_t timer) {
    const auto at = place_.find(timer);
    if (at == place_.end()) return;
    by_deadline_.erase(at->second);
    place_.erase(at);
  }
  bool armed(uint32_t timer) const { return place_.contains(timer); }
  Time deadline_of(uint32_t timer) const { return place_.at(timer)->first; }
  Time earliest() const { return by_deadline_.empty() ? never : by_deadline_.begin()->first; }

 private:
  std::multimap<Time, uint32_t> by_deadline_;
  std::map<uint32_t, std::multimap<Time, uint32_t>::iterator> place_;
};

// Returns a random duration up to the range of the wheels: 2^30 ticks. All orders of magnitude are
// equally likely.
Duration some_time(Prng& prng) {
  constexpr uint64_t longest = Duration(1095s).count();
  return Duration(static_cast<int64_t>(prng.below((longest >> prng.below(41)) + 1)));
}

void arm_or_disarm(TimerWheel& wheel, WheelModel& model, Time now, Prng& prng) {
  const auto timer = static_cast<uint32_t>(prng.below(timers));
  if (prng.chance(0.2)) {
    wheel.disarm(timer);
    return model.disarm(timer);
  }
  Time deadline = now + some_time(prng);
  if (prng.chance(0.1)) deadline = now - some_time(prng);
  if (prng.chance(0.1)) deadline = never;
  wheel.arm(timer, deadline);
  model.arm(timer, deadline);
}

void poll(TimerWheel& wheel, WheelModel& model, Time now, size_t room) {
  std::vector<uint32_t> fired(room);
  const size_t count = wheel.poll(now, fired);
  REQUIRE(count <= room);
  for (size_t i = 0; i < count; ++i) {
    REQUIRE(model.armed(fired[i]));
    REQUIRE(model.deadline_of(fired[i]) <= now);
    model.disarm(fired[i]);
  }
  const bool all_fired = model.earliest() == never || model.earliest() + TimerWheel::tick > now;
  if (count < room) REQUIRE(all_fired);
}

TEST_CASE("a timer wheel fires the same timers as a multimap of deadlines, up to a tick later") {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    INFO("seed " << seed);
    Prng prng(seed);
    TimerWheel wheel(timers);
    WheelModel model;
    Time now(some_time(prng));
    for (int step = 0; step < 1500; ++step) {
      for (uint64_t i = prng.below(4); i > 0; --i) arm_or_disarm(wheel, model, now, prng);
      for (uint32_t timer = 0; timer < timers; ++timer) {
        REQUIRE(wheel.armed(timer) == model.armed(timer));
      }
      const Time next = wheel.next_deadline();
      if (model.earliest() != never) {
        REQUIRE(next < std::max(model.earliest(), now) + TimerWheel::tick);
      }

      now = next != never && prng.chance(0.5) ? std::max(now, next) : now + some_time(prng);
      if (prng.chance(0.01)) now += 7h;
      poll(wheel, model, now, prng.chance(0.5) ? timers : 1 + prng.below(3));
    }
  }
}

TEST_CASE("a thread that sleeps until next_deadline wakes early at most once per wheel") {
  Prng prng(7);
  for (int round = 0; round < 2000; ++round) {
    TimerWheel wheel(1);
    std::array<uint32_t, 1> fired;
    Time now(some_time(prng));
    wheel.poll(now, fired);
    const Time deadline = now + some_time(prng);
    wheel.arm(0, deadline);
    int wakes = 0;
    for (size_t count = 0; count == 0; ++wakes) {
      REQUIRE(wakes < 6);
      now = std::max(now, wheel.next_deadline());
      count = wheel.poll(now, fired);
    }
    REQUIRE(fired[0] == 0);
    REQUIRE(now >= deadline);
    REQUIRE(now < deadline + TimerWheel::tick);
    REQUIRE(wheel.next_deadline() == never);
  }
}

TEST_CASE("a wheel without armed timers has no deadline after at most one spurious wake-up") {
  Prng prng(8);
  for (int round = 0; round < 500; ++round) {
    TimerWheel wheel(timers);
    std::array<uint32_t, timers> fired;
    CHECK(wheel.next_deadline() == never);
    Time now(some_time(prng));
    wheel.poll(now, fired);
    for (uint32_t timer = 0; timer < timers; ++timer) wheel.arm(timer, now + some_time(prng));
    for (uint32_t timer = 0; timer < timers; ++timer) wheel.disarm(timer);
    if (wheel.next_deadline() != never) {
      now = wheel.next_deadline();
      REQUIRE(wheel.poll(now, fired) == 0);
    }
    REQUIRE(wheel.next_deadline() == never);
  }
}

TEST_CASE("a timer that is armed again fires only at its new deadline") {
  TimerWheel wheel(2);
  std::array<uint32_t, 2> fired;
  wheel.arm(1, Time(1ms));
  wheel.arm(1, Time(5ms));
  CHECK(wheel.poll(Time(4ms), fired) == 0);
  wheel.arm(1, Time(4ms));
  CHECK(wheel.poll(Time(5ms), fired) == 1);
  wheel.arm(1, Time(6ms));
  wheel.arm(1, never);
  CHECK_FALSE(wheel.armed(1));
  CHECK(wheel.poll(Time(10ms), fired) == 0);
}

TEST_CASE("if time moves backwards, no timer fires twice and none is lost") {
  TimerWheel wheel(2);
  std::array<uint32_t, 2> fired;
  wheel.arm(0, Time(1s));
  CHECK(wheel.poll(Time(2s), fired) == 1);
  wheel.arm(1, Time(1500ms));
  CHECK(wheel.poll(Time(1s), fired) == 1);
  CHECK(fired[0] == 1);
}

// The deadline is farther away than one turn of the last wheel, which is 18 minutes.
TEST_CASE("a deadline hours away does not fire before it") {
  TimerWheel wheel(1);
  std::array<uint32_t, 1> fired;
  wheel.arm(0, Time(5h));
  for (Time now(0s); now < Time(5h); now += 1min) REQUIRE(wheel.poll(now, fired) == 0);
  CHECK(wheel.poll(Time(5h) + TimerWheel::tick, fired) == 1);
}

// CLOCK_MONOTONIC counts from the boot of the machine.
TEST_CASE("a wheel made on the machine's second day can be armed before it is polled") {
  TimerWheel wheel(1);
  std::array<uint32_t, 1> fired;
  wheel.arm(0, Time(30h));
  CHECK(wheel.poll(Time(29h), fired) == 0);
  CHECK(wheel.poll(Time(31h), fired) == 1);
}

}  // namespace
}  // namespace urma::test
