// SPDX-License-Identifier: Apache-2.0
#include "transport/rtp/retransmission_timer.h"

#include "tests/catch.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;
using transport::RetransmissionTimer;
using transport::Waits;
using Action = RetransmissionTimer::Action;

const Waits waits(1ms);  // as over udp

// A timer with a round trip of 40 us: it probes after 480 us, and times out after 1 ms.
struct Waiting {
  RetransmissionTimer timer{40us};
  Time now{1s};

  Waiting() {
    for (int i = 0; i < 100; ++i) timer.add(40us);
    timer.start(sel_rack, waits, now);
  }
  Action expire() {
    now = timer.deadline();
    return timer.expire(sel_rack, waits, now);
  }
  // Lets the peer answer this long after the last question, because it was not running; all packets
  // have arrived.
  void answer_after(Duration late) {
    now += late;
    CHECK_FALSE(
        timer.settle(late < timer.longest_answer(), now - late - 1ms, sel_rack, waits, now));
    timer.note_progress(true);
    timer.start(sel_rack, waits, now);
  }
};

TEST_CASE("retransmission timer: a probe, and time-outs that each wait twice as long") {
  Waiting one;
  const Time begun = one.now;
  CHECK(one.timer.expire(sel_rack, waits, begun) == Action::none);
  CHECK(one.expire() == Action::probe);
  CHECK(one.now == begun + 480us);
  CHECK(one.expire() == Action::time_out);
  CHECK(one.now == begun + 1ms);
  CHECK(one.expire() == Action::time_out);
  CHECK(one.now == begun + 3ms);
  CHECK(one.timer.timeouts_in_row() == 2);
}

TEST_CASE(
    "retransmission timer: a prompt answer to a retransmission shows that packets were lost") {
  Waiting one;
  one.expire();
  CHECK_FALSE(one.timer.settle(true, never, sel_rack, waits,
                               one.now + 40us));  // only a probe: no congestion yet
  one.timer.start(sel_rack, waits, one.now);
  one.expire();
  one.expire();
  CHECK(one.timer.settle(true, never, sel_rack, waits, one.now + 40us));
  // A question is judged only once.
  CHECK_FALSE(one.timer.settle(true, never, sel_rack, waits, one.now + 40us));
}

TEST_CASE("retransmission timer: the arrival of first copies shows that no packet was lost") {
  for (const Duration late : {Duration(40us), Duration(5ms)}) {
    Waiting one;
    one.expire();
    one.expire();
    CHECK_FALSE(one.timer.settle(true, one.now - 1ms, sel_rack, waits, one.now + late));
    CHECK(one.timer.peer_was_late() == (late > 1ms));
  }
  Waiting one;
  one.expire();
  one.expire();
  CHECK(one.timer.settle(true, one.now + 1us, sel_rack, waits,
                         one.now + 40us));  // it left after the question
}

TEST_CASE("retransmission timer: the wait for a late peer grows to 16 ms, and shrinks at losses") {
  Waiting one;
  for (const Duration expected : {1ms, 2ms, 4ms, 8ms, 16ms, 16ms}) {
    one.expire();
    one.answer_after(5ms);
    CHECK(one.timer.deadline() == one.now + expected);
    CHECK(one.timer.peer_was_late());
  }
  for (const Duration expected : {8ms, 4ms, 2ms, 1ms}) {
    one.timer.note_lost();
    CHECK(one.timer.time_out(sel_rack, waits, 0) == expected);
  }
  one.timer.note_lost();
  CHECK_FALSE(one.timer.peer_was_late());
}

TEST_CASE("retransmission timer: an answer that is slightly late changes nothing") {
  Waiting one;
  one.expire();
  one.answer_after(900us);
  CHECK_FALSE(one.timer.peer_was_late());
}

// A late peer runs again and answers the first question; further ones would be sent unnecessarily.
TEST_CASE("retransmission timer: only the first time-out of a peer that was late asks once") {
  Waiting one;
  one.expire();
  REQUIRE(one.expire() == Action::time_out);
  CHECK_FALSE(one.timer.asks_once(false));  // no sign yet that the peer is late
  one.answer_after(5ms);
  REQUIRE(one.timer.peer_was_late());
  CHECK_FALSE(one.timer.asks_once(false));
  while (one.timer.timeouts_in_row() == 0) one.expire();
  CHECK(one.timer.asks_once(false));
  REQUIRE(one.expire() == Action::time_out);
  CHECK_FALSE(one.timer.asks_once(false));
}

TEST_CASE("retransmission timer: an answer takes two round trips and 100 us at most") {
  for (const Duration rtt : {Duration(10us), Duration(40us), Duration(20ms)}) {
    CHECK(RetransmissionTimer(rtt).longest_answer() == 2 * rtt + 100us);
  }
}

TEST_CASE("retransmission timer: the answer to a probe has two round trips before the time-out") {
  // The probe is sent after 900 us, 100 us before the time-out would be.
  RetransmissionTimer timer(250us);
  for (int i = 0; i < 100; ++i) timer.add(250us);
  const Time begun(1s);
  timer.start(sel_rack, waits, begun);
  REQUIRE(timer.expire(sel_rack, waits, timer.deadline()) == Action::probe);
  CHECK(timer.deadline() == begun + 900us + 500us);
}

TEST_CASE("retransmission timer: news of packets sent after the question does not judge it") {
  Waiting one;
  one.expire();
  REQUIRE(one.expire() == Action::time_out);
  // Neither a question nor a packet that left before it is acknowledged.
  CHECK_FALSE(one.timer.settle(std::nullopt, one.now + 1us, sel_rack, waits, one.now + 5ms));
  CHECK_FALSE(one.timer.peer_was_late());
  CHECK_FALSE(one.timer.settle(std::nullopt, never, sel_rack, waits, one.now + 5ms));
  CHECK_FALSE(one.timer.peer_was_late());
  CHECK(one.timer.settle(true, never, sel_rack, waits, one.now + 6ms));
}

// A queue longer than the time-out: each acknowledgement comes after the question.
TEST_CASE("retransmission timer: a question that was too early is not repeated with each packet") {
  constexpr Duration round_trip = 23ms;
  Waiting one;
  for (int packet = 0; packet < 10; ++packet) {
    const Time sent = one.now;
    int asked = 0;
    while (one.timer.deadline() < sent + round_trip) {
      one.expire();
      ++asked;
    }
    one.now = sent + round_trip;
    const bool measured = asked == 0;
    CHECK((packet == 0 || measured));
    if (measured) one.timer.add(round_trip);
    // Too late for an answer to the last question.
    one.timer.settle(measured ? std::nullopt : std::optional(false), never, sel_rack, waits,
                     one.now);
    one.timer.note_progress(measured);
    one.timer.start(sel_rack, waits, one.now);
    if (measured) CHECK(one.timer.rtt().smoothed() == round_trip);
  }
  CHECK(one.timer.rtt().least() == 40us);
}

// The acknowledgement of the first copy comes shortly after the question, like an answer to it.
// Then comes that of the question.
TEST_CASE("retransmission timer: waits double if all questions are acknowledged, too") {
  for (const Duration round_trip : {500us, 1500us, 9000us}) {
    Waiting one;
    int packets_asked_for = 0;
    for (int packet = 0; packet < 20; ++packet) {
      const Time sent = one.now;
      one.timer.start(sel_rack, waits, sent);
      int questions = 0;
      while (one.timer.deadline() < sent + round_trip) {
        if (one.expire() == Action::time_out) one.timer.note_questions(1);
        ++questions;
      }
      packets_asked_for += questions > 0;
      if (questions == 0) one.timer.add(round_trip);
      one.now = sent + round_trip;
      one.timer.settle(questions > 0 ? std::optional(true) : std::nullopt, never, sel_rack, waits,
                       one.now);
      one.timer.note_progress(questions == 0);
      for (; questions > 0; --questions) one.timer.note_duplicate(waits);
    }
    INFO(round_trip.count());
    CHECK(packets_asked_for >= 1);
    CHECK(packets_asked_for <= 3);
    CHECK(one.timer.rtt().smoothed() == round_trip);
  }
}

TEST_CASE("retransmission timer: an answer ends a proven wait") {
  Waiting one;
  one.expire();
  one.now += 5ms;  // too late for an answer: the first copy took as long
  one.timer.settle(false, never, sel_rack, waits, one.now);
  one.timer.note_progress(false);
  one.timer.start(sel_rack, waits, one.now);
  CHECK(one.timer.deadline() >= one.now + 5ms);
  if (one.expire() == Action::time_out) one.timer.note_questions(1);
  one.now += 40us;
  one.timer.settle(true, never, sel_rack, waits, one.now);
  one.timer.note_progress(false);
  one.timer.start(sel_rack, waits, one.now);
  CHECK(one.timer.deadline() == one.now + 480us);
}

TEST_CASE("retransmission timer: a question that was needed does not change the next wait") {
  for (const int duplicates : {0, 1}) {
    Waiting one;
    for (int packet = 0; packet < 20; ++packet) {
      one.timer.start(sel_rack, waits, one.now);
      const Time sent = one.now;
      one.expire();
      CHECK(one.now == sent + 480us);
      // With two questions, the second one is a duplicate of the first.
      if (duplicates > 0) {
        CHECK(one.expire() == Action::time_out);
        one.timer.note_questions(1);
      }
      one.now += 40us;
      CHECK(one.timer.settle(true, never, sel_rack, waits, one.now) == (duplicates > 0));
      one.timer.note_progress(false);
      for (int i = 0; i < duplicates; ++i) one.timer.note_duplicate(waits);
    }
  }
}

TEST_CASE("retransmission timer: a peer that loses each first copy is not asked later and later") {
  Waiting one;
  for (int packet = 0; packet < 100; ++packet) {
    const Time sent = one.now;
    one.expire();
    one.now += 300us;  // later than an answer comes, so it may be of the first copy
    one.timer.settle(false, never, sel_rack, waits, one.now);
    one.timer.note_progress(false);
    one.timer.start(sel_rack, waits, one.now);
    REQUIRE(one.timer.deadline() - sent < 3ms);
  }
  one.timer.note_lost();
  one.timer.start(sel_rack, waits, one.now);
  CHECK(one.timer.deadline() == one.now + 480us);
}

TEST_CASE("retransmission timer: other modes ask no questions") {
  for (const Retransmission& mode : {sel_fast, sel_timeout, gbn_fast, gbn_timeout}) {
    RetransmissionTimer timer(40us);
    timer.start(mode, waits, Time(1s));
    CHECK(timer.expire(mode, waits, timer.deadline()) == Action::time_out);
    CHECK_FALSE(timer.settle(true, never, mode, waits, timer.deadline()));
    CHECK_FALSE(timer.settle(false, Time(1s), mode, waits, timer.deadline() + 20ms));
    CHECK_FALSE(timer.peer_was_late());
  }
}

}  // namespace
}  // namespace urma::test
