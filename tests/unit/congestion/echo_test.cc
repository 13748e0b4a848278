// SPDX-License-Identifier: Apache-2.0
#include "congestion/echo.h"

#include "tests/catch.h"

namespace urma::test {
namespace {

using congestion::Echo;
using congestion::Feedback;
using congestion::Needs;
using congestion::Signal;

constexpr Signal granted{.increase = true, .switched = true, .hint = 10};
constexpr Signal refused{.switched = true, .hint = 10};
constexpr Signal marked{.congested = true, .last_hop = true, .switched = true, .hint = 70};

Feedback echoed(Needs needs, std::initializer_list<Signal> signals) {
  Echo echo;
  for (const Signal& signal : signals) echo.add(signal, 4096, needs);
  return echo.take(needs);
}

TEST_CASE("increases that were granted add up, and marks are counted (UB 6.6.1.3)") {
  const Feedback sum = echoed(Needs::increases, {granted, refused, granted, marked, marked});
  CHECK(sum.increase);
  CHECK(sum.hint == 20);
  CHECK(sum.marked_packets == 2);
  CHECK(sum.last_hop);
  CHECK(sum.switched);
  CHECK_FALSE(echoed(Needs::increases, {refused}).increase);
}

TEST_CASE("with rates, the bytes that were granted add up, and the least rate named counts") {
  const Feedback grown = echoed(Needs::rates, {granted, refused, granted});
  CHECK(grown.increase);
  CHECK(grown.hint == 2 * 4096 / 32);
  Signal slower = marked;
  slower.hint = 60;
  const Feedback named = echoed(Needs::rates, {granted, marked, slower, marked});
  CHECK(named.marked_packets == 3);
  CHECK(named.hint == 60);
}

TEST_CASE("with rates, a packet that is smaller than a unit of hints may grow the window, too") {
  Echo echo;
  echo.add(granted, 28, Needs::rates);
  CHECK(echo.take(Needs::rates).hint == 1);
}

TEST_CASE("the longest queue is returned, and S if one packet had it") {
  Signal queued = granted;
  queued.switch_queue = 9;
  const Feedback sum = echoed(Needs::rates, {Signal{}, queued, granted});
  CHECK(sum.switch_queue == 9);
  CHECK(sum.switched);
  CHECK_FALSE(echoed(Needs::rates, {Signal{}}).switched);
}

TEST_CASE("an acknowledgement begins the sums anew") {
  Echo echo;
  echo.add(marked, 4096, Needs::increases);
  echo.take(Needs::increases);
  const Feedback none = echo.take(Needs::increases);
  CHECK(none.marked_packets == 0);
  CHECK_FALSE(none.switched);
}

TEST_CASE("the first mark and the first grant are urgent, and further ones are not") {
  Echo echo;
  CHECK_FALSE(echo.add(refused, 4096, Needs::rates));
  CHECK(echo.add(granted, 4096, Needs::rates));
  CHECK_FALSE(echo.add(granted, 4096, Needs::rates));
  CHECK(echo.add(marked, 4096, Needs::rates));
  CHECK_FALSE(echo.add(marked, 4096, Needs::rates));
}

// A double with defect (e) of the published algorithm: sums that wrap.
struct WrappingEcho {
  uint8_t marks = 0;
  uint16_t bytes = 0;
  bool add(const Signal& signal, uint32_t, Needs) {
    if (signal.congested) {
      ++marks;
    } else {
      bytes = static_cast<uint16_t>(bytes + signal.hint * 32);
    }
    return false;
  }
  Feedback take(Needs) const {
    return {.marked_packets = marks, .hint = static_cast<uint16_t>(bytes / 32)};
  }
};

template <class Kind>
bool keeps_large_sums() {
  Kind marks, hints;
  for (int i = 0; i < 256; ++i) marks.add(marked, 4096, Needs::increases);
  for (int i = 0; i < 17; ++i) {
    hints.add({.increase = true, .hint = 128}, 4096, Needs::increases);
  }
  return marks.take(Needs::increases).marked_packets > 0 &&
         hints.take(Needs::increases).hint == 17 * 128;
}

TEST_CASE("defect (e): 256 marks are not none, and 17 packets' worth of increases does not wrap") {
  CHECK(keeps_large_sums<Echo>());
  CHECK_FALSE(keeps_large_sums<WrappingEcho>());
}

TEST_CASE("sums stay at their largest value, and an acknowledgement is asked for before that") {
  Echo echo;
  int packets = 0;
  for (; !echo.full(); ++packets) echo.add(marked, 4096, Needs::increases);
  CHECK(packets < 255);
  for (int i = 0; i < 1000; ++i) echo.add(marked, 4096, Needs::increases);
  CHECK(echo.take(Needs::increases).marked_packets == 255);
  for (int i = 0; i < 1000; ++i) echo.add({.increase = true, .hint = 255}, 4096, Needs::increases);
  CHECK(echo.full());
  CHECK(echo.take(Needs::increases).hint == 0xffff);
}

TEST_CASE("the bytes that explicit rates grant are acknowledged before their 15 bits are full") {
  constexpr uint32_t bytes = 8240;
  Echo echo;
  uint32_t packets = 0;
  for (; !echo.full(); ++packets) echo.add({.increase = true}, bytes, Needs::rates);
  const Feedback all = echo.take(Needs::rates);
  CHECK(all.hint < 0x8000);
  CHECK(all.hint * 32u >= packets * bytes);
}

}  // namespace
}  // namespace urma::test
