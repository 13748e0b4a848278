// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "base/clock.h"
#include "engine/control_calls.h"
#include "engine/descriptor_sleep.h"
#include "engine/device_paths.h"
#include "engine/engine_token.h"
#include "engine/fork_mark.h"
#include "engine/keeper.h"
#include "engine/open_state.h"
#include "engine/passes.h"
#include "engine/pollers.h"
#include "engine/service_thread.h"
#include "engine/waiting.h"
#include "engine/waker.h"
#include "tests/catch.h"
#include "tests/unit/child.h"
#include "tests/unit/engine/idle_port.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;
using namespace engine;

// The parts of a Runner, on a port to which no packet comes.
struct Parts {
  explicit Parts(Threads threads) : keeper(threads, waker) { REQUIRE(waker.start()); }

  NotDriven not_driven;
  Engine engine{std::make_unique<IdlePort>(), idle_settings(), std::make_unique<SeededEntropy>(1)};
  Waker waker{engine.port(), nullptr, not_driven};
  Keeper keeper;
  Passes passes{engine, waker, nullptr, true};
  DescriptorSleep descriptors{engine, passes, waker, keeper};
  ServiceThread service{passes, waker, keeper, descriptors};
  ControlCalls calls{engine, passes, waker, nullptr};
  OpenState state;
};

// A thread that is not woken, or a condition that stays false, fails a test after this time.
constexpr Duration patience = 60s;

// Waits until another thread makes the condition true.
template <class Condition>
bool soon(Condition&& condition) {
  const Time limit = read_clock() + patience;
  while (!condition()) {
    if (read_clock() > limit) return false;
    std::this_thread::yield();
  }
  return true;
}

TEST_CASE("one thread at a time has the engine token, and sees what the previous one wrote") {
  EngineToken token;
  REQUIRE(token.take());
  CHECK_FALSE(token.take());
  token.drop();
  uint64_t passes = 0;  // not atomic: the token orders it
  const auto run = [&] {
    for (uint32_t got = 0; got < 1000;) {
      if (!token.take()) {
        std::this_thread::yield();
        continue;
      }
      ++passes;
      ++got;
      token.drop();
    }
  };
  std::thread other(run);
  run();
  other.join();
  CHECK(passes == 2000);
}

TEST_CASE("an object knows whether it is used in a child of fork") {
  const ForkMark mark;
  CHECK(mark.here());
  CHECK(survives([&] {
    if (mark.here()) abort();
  }));
}

TEST_CASE("one thread closes a device, and the others wait for it") {
  OpenState state;
  CHECK(state.open());
  REQUIRE(state.begin());
  CHECK_FALSE(state.begin());
  CHECK_FALSE(state.open());
  CHECK_FALSE(state.closed());
  std::thread other([&] { state.await(); });
  state.end();
  other.join();
  CHECK(state.closed());
}

TEST_CASE("a waker wakes a thread that is about to sleep or sleeps, and no other") {
  Parts parts(Threads::inlined);
  Waker& waker = parts.waker;
  CHECK_FALSE(waker.asleep());
  waker.drowse();
  CHECK(waker.asleep());
  waker.wake();
  CHECK_FALSE(waker.asleep());
  const Time limit = read_clock() + patience;
  waker.rest(limit);
  CHECK(read_clock() < limit);
  waker.awake();
  CHECK_FALSE(waker.asleep());
}

TEST_CASE("in automatic mode many empty polls or a wait recall the application as keeper") {
  Parts parts(Threads::automatic);
  Keeper& keeper = parts.keeper;
  REQUIRE(keeper.start());
  CHECK_FALSE(keeper.service_keeps());
  keeper.take_over(Time{});
  CHECK(keeper.service_keeps());
  for (int i = 0; i < 32; ++i) keeper.polled_empty();
  CHECK(keeper.service_keeps());
  keeper.polled_empty();
  CHECK_FALSE(keeper.service_keeps());

  keeper.hand_over();
  CHECK(keeper.service_keeps());
  keeper.await_timer();  // which the hand-over has set
  // Polls between different hand-overs are not added up.
  for (int sleep = 0; sleep < 100; ++sleep) {
    keeper.polled_empty();
    keeper.hand_over();
  }
  CHECK(keeper.service_keeps());
  keeper.recall();
  CHECK_FALSE(keeper.service_keeps());
}

// Returns how many polls that find nothing make the application the keeper.
int polls_until_recall(Keeper& keeper) {
  int polls = 0;
  while (keeper.service_keeps()) {
    keeper.polled_empty();
    ++polls;
  }
  return polls;
}

TEST_CASE("an application that polls only briefly becomes the keeper less and less easily") {
  Parts parts(Threads::automatic);
  Keeper& keeper = parts.keeper;
  REQUIRE(keeper.start());
  keeper.take_over(read_clock());
  CHECK(polls_until_recall(keeper) == 33);
  for (int brief_times = 1; brief_times <= 10; ++brief_times) {
    keeper.take_over(Time{});  // it has not polled since
    CHECK(polls_until_recall(keeper) == (32 << std::min(brief_times, 8)) + 1);
  }
  // A pause between polls begins the count anew.
  keeper.take_over(Time{});
  for (int i = 0; i < 32 << 8; ++i) keeper.polled_empty();
  keeper.polls_paused();
  CHECK(polls_until_recall(keeper) == (32 << 8) + 1);
  // After it has polled for long once, it is as at the beginning.
  keeper.take_over(read_clock() + Keeper::brief);
  CHECK(polls_until_recall(keeper) == 33);
}

TEST_CASE("the keeper of a served device never changes") {
  Parts parts(Threads::served);
  for (int i = 0; i < 100; ++i) parts.keeper.polled_empty();
  parts.keeper.hand_over();
  CHECK(parts.keeper.service_keeps());
}

TEST_CASE("a control call is run again in each pass until it is done") {
  Parts parts(Threads::inlined);
  int runs = 0;
  parts.calls.call([&](Engine& engine, Time) {
    CHECK(&engine == &parts.engine);
    return ++runs == 3;
  });
  CHECK(runs == 3);
  // While a control call waits, the alarm is near.
  bool again = false;
  Time alarm = never;
  parts.calls.call([&](Engine&, Time) {
    if (again) alarm = parts.passes.alarm();
    return std::exchange(again, true);
  });
  CHECK(alarm <= read_clock() + Passes::command_patience);
}

TEST_CASE("a pass inside a pass is refused, and an idle engine reports that it is idle") {
  Parts parts(Threads::inlined);
  Passes::Ran inner = Passes::Ran::idle;
  parts.calls.call([&](Engine&, Time) {
    inner = parts.passes.try_pass(nullptr);
    return true;
  });
  CHECK(inner == Passes::Ran::by_another);
  CHECK(soon([&] { return parts.passes.try_pass(nullptr) == Passes::Ran::idle; }));
}

TEST_CASE("one thread at a time sleeps at the descriptors, and not beside posted works") {
  Parts parts(Threads::served);
  REQUIRE(parts.descriptors.occupy());
  CHECK_FALSE(parts.descriptors.occupy());
  CHECK(parts.descriptors.occupied());
  parts.engine.dirty().mark(0);
  const Time limit = read_clock() + patience;
  parts.descriptors.sleep_until_alarm(nullptr, limit);
  CHECK(read_clock() < limit);
  CHECK_FALSE(parts.waker.asleep());
  parts.descriptors.leave();
  CHECK(parts.descriptors.occupy());
}

TEST_CASE("the service thread takes over when no application polls, and ends when it is stopped") {
  Parts parts(Threads::automatic);
  REQUIRE(parts.service.start());
  CHECK(soon([&] { return parts.keeper.service_keeps(); }));
  parts.keeper.recall();
  CHECK(soon([&] { return parts.keeper.service_keeps(); }));
  parts.service.stop();
  CHECK(parts.keeper.stopping());
}

TEST_CASE("the service thread hands over to a thread that sleeps at the descriptors") {
  Parts parts(Threads::automatic);
  REQUIRE(parts.descriptors.occupy());
  REQUIRE(parts.service.start());
  parts.keeper.hand_over();
  CHECK(soon([&] { return !parts.keeper.service_keeps(); }));
  parts.descriptors.leave();
  parts.keeper.left_descriptors();
  CHECK(soon([&] { return parts.keeper.service_keeps(); }));
  parts.service.stop();
}

TEST_CASE("a thread that waits returns at its time limit, or when the device is closed") {
  Parts parts(Threads::inlined);
  Waiting waiting(parts.passes, parts.keeper, parts.descriptors, parts.state);
  jetty::Jfc jfc(16);
  const Time before = read_clock();
  waiting.run_passes(jfc, before + 2ms, false);
  CHECK(read_clock() - before >= 2ms);
  waiting.be_served(jfc, before + 4ms);
  CHECK(read_clock() - before >= 4ms);
  CHECK_FALSE(parts.descriptors.occupied());
  parts.state.begin();
  parts.state.end();
  waiting.run_passes(jfc, never, false);
  waiting.be_served(jfc, never);
}

TEST_CASE("a thread that polls alone does not count as several, and two threads do for a while") {
  Pollers pollers;
  CHECK(pollers.several());  // the first poll of any thread
  for (int i = 0; i < 1024; ++i) pollers.several();
  CHECK_FALSE(pollers.several());
  bool other = false;
  std::thread([&] { other = pollers.several(); }).join();
  CHECK(other);
  CHECK(pollers.several());
  for (int i = 0; i < 1024; ++i) pollers.several();
  CHECK_FALSE(pollers.several());
}

TEST_CASE("on a device with one path, paths can be neither added nor removed") {
  Parts parts(Threads::inlined);
  const drivers::PortFacts& facts = parts.engine.port().facts();
  DevicePaths paths(parts.engine, parts.calls, facts, nullptr, parts.not_driven);
  CHECK(paths.add("udp()").status() == Status::unsupported);
  CHECK(paths.remove(facts.self).status() == Status::invalid_argument);
  CHECK(paths.endpoints() == std::vector{facts.self});
}

// Returns how many timers of this process have fired and were not read since.
unsigned fired_timers() {
  unsigned fired = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fdinfo")) {
    std::ifstream info(entry.path());
    for (std::string line; std::getline(info, line);) fired += line == "ticks: 1";
  }
  return fired;
}

// While a device closes, a thread of the application that waits leaves the descriptors again and
// again. If it set the timer each time, the service thread would not end.
TEST_CASE("the timer that ends a service thread fires though other threads leave descriptors") {
  Parts parts(Threads::automatic);
  REQUIRE(parts.keeper.start());
  parts.keeper.left_descriptors();
  REQUIRE(soon([] { return fired_timers() == 1; }));
  parts.keeper.stop();
  REQUIRE(soon([] { return fired_timers() == 1; }));
  parts.keeper.left_descriptors();
  CHECK(fired_timers() == 1);
}

}  // namespace
}  // namespace urma::test
