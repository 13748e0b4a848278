// SPDX-License-Identifier: Apache-2.0
#include "drivers/sim/engines.h"

#include <functional>

#include "tests/catch.h"

namespace urma::drivers::sim {
namespace {

using namespace std::chrono_literals;

// An engine whose passes are counted, and ask for the time that the test has chosen.
class CountedEngine final : public VirtualClock::Driven {
 public:
  Time pass(Time now) override {
    ++passes;
    last = now;
    if (during_pass) during_pass();
    return wanted;
  }

  int passes = 0;
  Time last{};
  Time wanted = never;
  std::function<void()> during_pass;
};

// Runs what is due until `now`.
void run_until(Engines& engines, Time now) {
  while (engines.next() <= now) engines.run_next(engines.next());
}

TEST_CASE("an engine runs when it is added, and then when its last pass asked for it") {
  Prng prng(1);
  Engines engines(prng);
  CountedEngine engine;
  engine.wanted = Time(5us);
  CHECK(engines.next() == never);
  const uint32_t index = engines.add(engine, Time(1us));
  CHECK(engines.add(engine, Time(3us)) == index);
  CHECK(engines.next() == Time(1us));
  engines.run_next(Time(1us));
  CHECK(engine.last == Time(1us));
  CHECK(engines.next() == Time(5us));

  // It always has more to do: time advances nevertheless.
  engine.wanted = Time{};
  engines.run_next(Time(5us));
  CHECK(engines.next() > Time(5us));
  CHECK(engines.next() < Time(6us));

  engine.wanted = never;
  engines.run_next(engines.next());
  CHECK(engines.next() == never);
}

TEST_CASE("arrivals and posted works let an engine run earlier, but never later") {
  Prng prng(1);
  Engines engines(prng);
  CountedEngine engine;
  const uint32_t index = engines.add(engine, Time{});
  engines.run_next(Time{});
  engines.wake(index, Time(4us));
  engines.wake(index, Time(6us));
  CHECK(engines.next() == Time(4us));
  engines.poke(engine, Time(3us));
  CHECK(engines.next() == Time(3us));
  engines.poke(engine, Time(5us));
  CHECK(engines.next() == Time(3us));

  CountedEngine unknown;
  engines.poke(unknown, Time(1us));
  CHECK(engines.next() == Time(3us));
}

TEST_CASE("a stopped engine does not run until it continues") {
  Prng prng(1);
  Engines engines(prng);
  CountedEngine engine;
  const uint32_t index = engines.add(engine, Time{});
  engines.stop(index, true);
  engines.wake(index, Time(1us));
  engines.poke(engine, Time(1us));
  CHECK(engines.next() == never);
  engines.stop(index, false);
  run_until(engines, Time(2us));
  CHECK(engine.passes == 1);
}

TEST_CASE("an engine that may be late runs at a random time up to this") {
  Prng prng(1);
  Engines engines(prng);
  CountedEngine engine;
  const uint32_t index = engines.add(engine, Time{});
  engines.allow_lateness(index, 10us);
  engines.allow_lateness(index, 2us);  // that of another port: the larger one counts
  run_until(engines, Time{});
  Time earliest = never, latest{};
  for (int i = 0; i < 200; ++i) {
    engines.wake(index, Time(1ms));
    earliest = std::min(earliest, engines.next());
    latest = std::max(latest, engines.next());
    engines.run_next(engines.next());
  }
  CHECK(earliest >= Time(1ms));
  CHECK(earliest < Time(1ms + 1us));
  CHECK(latest > Time(1ms + 9us));
  CHECK(latest < Time(1ms + 10us));
}

TEST_CASE(
    "a removed engine does not run, even if a pass has removed it, and its index is used again") {
  Prng prng(1);
  Engines engines(prng);
  CountedEngine first, second;
  const uint32_t index = engines.add(first, Time{});
  first.during_pass = [&] { CHECK(engines.remove(first) == index); };
  first.wanted = Time(1us);
  engines.run_next(Time{});
  CHECK(engines.next() == never);
  CHECK(engines.remove(first) == Engines::none);

  // The pass of one engine removes it and adds another one, which takes its index.
  engines.add(first, Time{});
  first.during_pass = [&] {
    engines.remove(first);
    CHECK(engines.add(second, Time(7us)) == index);
  };
  engines.run_next(Time{});
  CHECK(engines.next() == Time(7us));
}

}  // namespace
}  // namespace urma::drivers::sim
