// SPDX-License-Identifier: Apache-2.0
#include "jetty/target/guesses.h"

#include <map>

#include "base/prng.h"
#include "tests/catch.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;
using jetty::Guesses;

Eid address(uint8_t last) {
  Eid out;
  out.bytes[15] = std::byte{last};
  return out;
}

TEST_CASE("sixteen wrong tokens in a second are tolerated, and the next one counts as guessing") {
  Guesses guesses;
  Time now{1h};
  for (int second = 0; second < 3; ++second) {
    for (int i = 0; i < 16; ++i) {
      CHECK_FALSE(guesses.wrong(address(1), now));
      now += 1ms;
    }
    now += 1s;
  }
  for (int i = 0; i < 16; ++i) CHECK_FALSE(guesses.wrong(address(1), now));
  CHECK_FALSE(guesses.wrong(address(2), now));
  CHECK(guesses.wrong(address(1), now) == now + 100ms);
}

TEST_CASE("a peer is ignored for twice as long each time, up to 10 s; 20 s of quiet reset it") {
  Guesses guesses;
  Time now{1h};
  for (const Duration expected :
       {Duration(100ms), Duration(200ms), Duration(400ms), Duration(800ms), Duration(1600ms),
        Duration(3200ms), Duration(6400ms), Duration(10s), Duration(10s)}) {
    std::optional<Time> until;
    int tries = 0;
    for (; !until; ++tries) until = guesses.wrong(address(1), now);
    CHECK(*until == now + expected);
    CHECK(tries <= 17);
    now = *until;
  }
  now += 19s;
  for (int i = 0; i < 16; ++i) CHECK_FALSE(guesses.wrong(address(1), now));
  CHECK(guesses.wrong(address(1), now) == now + 10s);
  now += 10s + 20s;
  for (int i = 0; i < 16; ++i) CHECK_FALSE(guesses.wrong(address(1), now));
  CHECK(guesses.wrong(address(1), now) == now + 100ms);
}

TEST_CASE("a new peer at an ignored address has one try") {
  Guesses guesses;
  Time now{1h};
  for (int i = 0; i < 17; ++i) guesses.wrong(address(1), now);
  now += 50ms;
  CHECK(guesses.wrong(address(1), now) == now + 200ms);
  for (int i = 0; i < 4; ++i) {
    for (std::optional<Time> until; !until; now = until.value_or(now)) {
      until = guesses.wrong(address(1), now);
    }
  }
  now -= 1500ms;  // of 3.2 s; the second in which the last guesses were counted has ended long ago
  CHECK(guesses.wrong(address(1), now) == now + 6400ms);
}

// A peer guesses as fast as it can, from more addresses than are remembered, or from few.
TEST_CASE("the number of guesses stays within its limit") {
  for (const uint8_t count : {uint8_t{1}, uint8_t{3}, uint8_t{60}}) {
    Guesses guesses;
    Prng prng(count);
    std::map<uint8_t, Time> ignored;
    uint64_t heard = 0;
    const Time begun{1h};
    for (Time now = begun; now < begun + 60s; now += 100us) {
      const auto one = static_cast<uint8_t>(prng.below(count));
      if (now < ignored[one]) continue;
      ++heard;
      if (const auto until = guesses.wrong(address(one), now)) ignored[one] = *until;
    }
    INFO("addresses " << unsigned{count} << ", accepted " << heard);
    CHECK(heard >= count * 17u);
    CHECK(heard <= count * (17u * 10));
  }
}

TEST_CASE("guesses: a caller without a record can ask which addresses are ignored") {
  Guesses guesses;
  const Time start{1h};
  const Eid one{{std::byte{1}}};
  const Eid other{{std::byte{2}}};
  std::optional<Time> until;
  for (int i = 0; i < 17; ++i) {
    CHECK_FALSE(guesses.ignores(one, start));
    until = guesses.wrong(one, start);
  }
  REQUIRE(until);
  CHECK(guesses.ignores(one, start));
  CHECK(guesses.ignores(one, *until - 1ns));
  CHECK_FALSE(guesses.ignores(one, *until));
  CHECK_FALSE(guesses.ignores(other, start));
}

}  // namespace
}  // namespace urma::test
