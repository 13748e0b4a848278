// SPDX-License-Identifier: Apache-2.0
#include "tests/catch.h"
#include "tests/unit/transport/route_parts.h"

namespace urma::test {
namespace {

using transport::RouteDelays;

struct Delays : TableOf {
  explicit Delays(uint8_t count) : TableOf(count) {
    for (uint8_t i = 0; i < count; ++i) table[i].usable = true;
  }

  RouteDelays delays{table};
};

TEST_CASE("a packet may arrive later than on the fastest route by twice the difference") {
  Delays with(2);
  with.delays.note_arrival(0, moment(10ms), moment(11ms));
  with.delays.note_arrival(1, moment(10ms), moment(15ms));
  CHECK(with.delays.least_taken() == 1ms);
  with.delays.judge(1ms, moment(15ms));
  CHECK(with.delays.later(0) == 0ms);
  CHECK(with.delays.later(1) == 8ms);
  // A route that is not usable is ignored in the comparison.
  with.table[0].usable = false;
  CHECK(with.delays.least_taken() == 5ms);
}

TEST_CASE("an arrival overtakes packets of its own route only, after the tolerance") {
  Delays with(2);
  with.delays.note_arrival(0, moment(10ms), moment(12ms));
  with.delays.judge(1ms, moment(12ms));
  // The packet took 2 ms. One that was sent at 9 ms or later may still arrive.
  CHECK(with.delays.overtaken_before(0) == moment(9ms));
  CHECK(with.delays.overtaken_before(1) < moment(0s));
  CHECK(with.delays.patience(0, moment(9ms), 1ms) == moment(12ms) + Duration(1));
  CHECK(with.delays.patience(0, moment(11ms), 1ms) == never);
  CHECK(with.delays.patience(1, moment(9ms), 1ms) == never);
  with.delays.forget_packets();
  CHECK(with.delays.patience(0, moment(9ms), 1ms) == never);
  // The time that the route takes stays known.
  CHECK(with.delays.least_taken() == 2ms);
}

TEST_CASE("measured times are smoothed, and belong to the route that carried the packet") {
  Delays with(1);
  with.delays.note_arrival(0, moment(10ms), moment(11ms));
  with.delays.note_arrival(0, moment(20ms), moment(29ms));
  CHECK(with.table[0].took == 2ms);
  with.table[0].begun = moment(30ms);
  with.delays.note_arrival(0, moment(29ms), moment(99ms));
  CHECK(with.table[0].took == 2ms);
  with.delays.add(0);
  CHECK(with.delays.least_taken() == 0ms);
}

}  // namespace
}  // namespace urma::test
