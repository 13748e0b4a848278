// SPDX-License-Identifier: Apache-2.0
#include "engine/engine_time.h"

#include "base/prng.h"
#include "tests/catch.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;
using engine::EngineTime;

TEST_CASE("engine time equals machine time for an engine that runs when planned") {
  EngineTime time;
  Time machine(5s);
  Time now = time.advance(machine, never);
  CHECK(now == Time(5s));
  for (const Duration step : {1us, 50'000us, 100'000us}) {
    machine += step;
    now = time.advance(machine, now);
    CHECK(now == machine);
  }
  CHECK(time.to_machine(now + 7ms) == machine + 7ms);
  CHECK(time.to_machine(never) == never);
}

TEST_CASE("of a delay beyond the plan, at most 100 ms count") {
  EngineTime time;
  time.advance(Time(5s), never);
  // The pass was planned for one second later and ran three seconds later: of the two seconds of
  // delay, 100 ms count.
  CHECK(time.advance(Time(8s), Time(6s)) == Time(6s) + 100ms);
  CHECK(time.to_machine(Time(6s) + 100ms) == Time(8s));
  CHECK(time.advance(Time(8s) + 100ms, Time(6s)) == Time(6s) + 200ms);
  CHECK(time.advance(Time(8s) + 201ms, Time(6s)) == Time(6s) + 300ms);
}

TEST_CASE("a device that is always late still reaches its deadlines") {
  EngineTime time;
  Time machine(5s);
  const Time begun = time.advance(machine, never);
  Time now = begun;
  // The device plans to run each millisecond, and runs every 300 ms.
  while (now < begun + 2s) now = time.advance(machine += 300ms, now + 1ms);
  CHECK(machine - Time(5s) <= 6s);
}

TEST_CASE("waiting as planned is not a gap, however long") {
  EngineTime time;
  time.advance(Time(5s), never);
  CHECK(time.advance(Time(1000s), Time(1000s)) == Time(1000s));
  // Waiting without a plan is not a gap either.
  CHECK(time.advance(Time(5000s), never) == Time(5000s));
  // Waking early for a packet is not a gap either.
  CHECK(time.advance(Time(5001s), Time(9000s)) == Time(5001s));
}

TEST_CASE("a plan for the past is a plan for now") {
  EngineTime time;
  time.advance(Time(5s), never);
  CHECK(time.advance(Time(5s) + 90ms, Time(1s)) == Time(5s) + 90ms);
  CHECK(time.advance(Time(5s) + 191ms, Time(1s)) == Time(5s) + 190ms);
}

TEST_CASE("engine time never goes back, even if machine time does") {
  EngineTime time;
  CHECK(time.advance(Time(5s), never) == Time(5s));
  CHECK(time.advance(Time(4s), never) == Time(5s));
  CHECK(time.advance(Time(5s) + 1ms, never) == Time(5s) + 1ms);
}

TEST_CASE(
    "for any sequence of passes, engine time is machine time with at most 100 ms of each delay") {
  Prng prng(1);
  for (int life = 0; life < 200; ++life) {
    EngineTime time;
    Time machine(Duration(static_cast<int64_t>(prng.below(1'000'000'000'000))));
    Time now = time.advance(machine, never);
    Duration lost{};
    for (int pass = 0; pass < 100; ++pass) {
      const auto some = [&] {
        return Duration(static_cast<int64_t>(prng.below(uint64_t{1} << prng.between(1, 35))));
      };
      const Time planned = prng.chance(0.3) ? never : now + some() - some() / 4;
      const Duration slept = some();
      machine += slept;
      const Duration late =
          planned == never ? Duration{} : slept - std::max(planned - now, Duration{});
      if (late > 100ms) lost += late - 100ms;
      const Time before = now;
      now = time.advance(machine, planned);
      REQUIRE(now == machine - lost);
      REQUIRE(now >= before);
      REQUIRE(time.to_machine(now) == machine);
    }
  }
}

}  // namespace
}  // namespace urma::test
