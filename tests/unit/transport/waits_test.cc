// SPDX-License-Identifier: Apache-2.0
// How long ends wait for each other, by how late an end may run.

#include "transport/rtp/waits.h"

#include "tests/catch.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;
using transport::Waits;

struct Expected {
  Duration rtt;
  Duration ack_delay;
  Duration answer_delay;
  Duration least_timeout;
  Duration overtaking;
};

void check(const Waits& waits, std::initializer_list<Expected> rows) {
  for (const Expected& row : rows) {
    INFO(row.rtt.count() << " ns");
    CHECK(waits.ack_delay(row.rtt) == row.ack_delay);
    CHECK(waits.answer_delay(row.rtt) == row.answer_delay);
    CHECK(waits.least_timeout(row.rtt) == row.least_timeout);
    CHECK(waits.overtaking(row.rtt) == row.overtaking);
  }
}

TEST_CASE("waits: an end that may run 1 ms late, as over udp") {
  check(Waits(1ms), {{8us, 100us, 400us, 1ms, 1ms},
                     {40us, 100us, 400us, 1ms, 1ms},
                     {400us, 100us, 400us, 1ms, 1ms},
                     {500us, 125us, 400us, 1ms, 1ms},
                     {800us, 200us, 400us, 1ms, 1600us},
                     {1600us, 400us, 400us, 1ms, 3200us},
                     {20ms, 400us, 400us, 1ms, 40ms}});
  CHECK(Waits(1ms).late_after() == 1ms);
}

TEST_CASE("waits: a punctual end waits for round trips alone") {
  check(Waits(0ns), {{8us, 2us, 2us, 20096ns, 16us},
                     {40us, 10us, 10us, 84096ns, 80us},
                     {800us, 200us, 200us, 1ms, 1600us},
                     {20ms, 400us, 400us, 1ms, 40ms}});
  CHECK(Waits(0ns).late_after() == 1ms);
}

TEST_CASE("waits: for an end that may run later, only others wait longer") {
  check(Waits(5ms), {{8us, 100us, 2ms, 5ms, 5ms}, {20ms, 400us, 2ms, 5ms, 40ms}});
  CHECK(Waits(5ms).late_after() == 5ms);
}

TEST_CASE("waits: no acknowledgement is held back longer than its sender waits for it") {
  for (const Duration lateness : {0us, 1us, 30us, 400us, 1000us, 5000us, 1'000'000us}) {
    const Waits waits(lateness);
    for (Duration rtt = 1us; rtt < 1s; rtt = rtt * 5 / 4) {
      CHECK(waits.ack_delay(rtt) <= waits.answer_delay(rtt));
      CHECK(waits.least_timeout(rtt) >= lateness);
    }
  }
}

}  // namespace
}  // namespace urma::test
