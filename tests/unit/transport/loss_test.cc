// SPDX-License-Identifier: Apache-2.0
#include "transport/rtp/loss.h"

#include "tests/catch.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;
using transport::is_lost;
using transport::LatestArrival;
using transport::LossEvidence;
using transport::RttEstimator;
using transport::SentAgain;

const Psn acknowledged = Psn::first(2);  // earlier packets have numbers from before the wrap

// Returns the evidence of an acknowledgement up to `through`, whose last packet left at `sent`.
LossEvidence evidence_of_time(Psn through, Time sent, Duration tolerance, uint32_t packets) {
  LatestArrival latest;
  latest.note(sent, sent + 7ms);
  return latest.evidence(through, tolerance, packets, sent + 7ms);
}

TEST_CASE("rack: a packet sent once is lost when the third after it has been acknowledged") {
  const LossEvidence evidence = evidence_of_time(acknowledged, Time(1ms), 1s, 3);
  for (uint64_t behind = 0; behind < 10; ++behind) {
    INFO(behind << " behind");
    CHECK(is_lost(acknowledged - behind, Time(1ms), false, evidence) == (behind >= 3));
  }
  for (uint64_t ahead = 1; ahead < 10; ++ahead) {
    CHECK_FALSE(is_lost(acknowledged + ahead, Time(1ms), false, evidence));
  }
}

TEST_CASE("rack: the number proves nothing for a packet sent again, or once one was overtaken") {
  CHECK_FALSE(is_lost(acknowledged - 1000, Time(1ms), true,
                      evidence_of_time(acknowledged, Time(1ms), 1s, 3)));
  CHECK_FALSE(is_lost(acknowledged - 1000, Time(1ms), false,
                      evidence_of_time(acknowledged, Time(1ms), 1s, 0)));
}

TEST_CASE("rack: a packet is lost when one sent later than the reorder window is acknowledged") {
  const LossEvidence evidence = evidence_of_time(acknowledged, Time(10ms), 4ms, 3);
  for (const bool again : {false, true}) {
    CHECK(is_lost(acknowledged - 1, Time(6ms - 1ns), again, evidence));
    CHECK_FALSE(is_lost(acknowledged - 1, Time(6ms), again, evidence));
    CHECK_FALSE(is_lost(acknowledged + 5, Time(10ms), again, evidence));
    CHECK_FALSE(is_lost(acknowledged + 5, Time(11ms), again, evidence));
  }
}

TEST_CASE("rack: an overtaken packet is lost after the other one's time plus the tolerance") {
  LatestArrival latest;
  CHECK(latest.patience(Time(1ms), 4ms) == never);
  latest.note(Time(10ms), Time(17ms));
  latest.note(Time(9ms), Time(18ms));  // an earlier packet changes nothing
  CHECK(latest.patience(Time(11ms), 4ms) == never);
  CHECK(latest.patience(Time(10ms), 4ms) == Time(21ms + 1ns));  // of the same burst
  const Time until = latest.patience(Time(8ms), 4ms);
  CHECK(until == Time(19ms + 1ns));
  const auto lost = [&](Time now) {
    return is_lost(acknowledged - 1, Time(8ms), false, latest.evidence(acknowledged, 4ms, 0, now));
  };
  CHECK_FALSE(lost(until - 1ns));
  CHECK(lost(until));
  // No packet that left later has arrived, so however much time passes, this one is not lost.
  CHECK_FALSE(is_lost(acknowledged - 1, Time(11ms), false,
                      latest.evidence(acknowledged, 4ms, 0, Time(1s))));
}

TEST_CASE("rack: more evidence never revokes a loss") {
  for (int64_t behind = 0; behind < 6; ++behind) {
    for (int64_t sent = 0; sent < 6; ++sent) {
      for (const bool again : {false, true}) {
        bool lost = false;
        for (uint64_t news = 0; news < 8; ++news) {
          const auto evidence = evidence_of_time(
              acknowledged + news, Time(Duration(static_cast<int64_t>(news))), 2ns, 3);
          const bool now_lost = is_lost(acknowledged - static_cast<uint64_t>(behind),
                                        Time(Duration(sent)), again, evidence);
          REQUIRE((now_lost || !lost));
          lost = now_lost;
        }
      }
    }
  }
}

TEST_CASE("rack: the tolerance grows with spurious retransmissions, up to a round trip") {
  transport::ReorderTolerance tolerance;
  CHECK_FALSE(tolerance.seen());
  CHECK(tolerance.window(8ms) == 2ms);
  tolerance.learn(true, false);
  CHECK(tolerance.seen());
  CHECK(tolerance.window(8ms) == 2ms);
  for (const Duration expected : {4ms, 6ms, 8ms, 8ms}) {
    tolerance.learn(false, true);
    CHECK(tolerance.window(8ms) == expected);
  }
  for (int i = 0; i < 15; ++i) tolerance.calm();
  CHECK(tolerance.window(8ms) == 8ms);
  tolerance.calm();
  CHECK(tolerance.window(8ms) == 6ms);
}

TEST_CASE("fast: a reported hole is lost, and only once") {
  const Psn first = Psn::first(0xfffff0);
  SentAgain sent_again(first);
  LossEvidence evidence = sent_again.evidence(first + 5, Time{});
  CHECK(is_lost(first + 2, Time(1ms), false, evidence));
  CHECK(is_lost(first + 5, Time(1ms), false, evidence));
  CHECK_FALSE(is_lost(first + 6, Time(1ms), false, evidence));
  sent_again.sent_again(first + 2);
  sent_again.sent_again(first + 5);
  // HighRtxPSN: all holes up to it have been sent again.
  evidence = sent_again.evidence(first + 9, Time{});
  CHECK_FALSE(is_lost(first + 5, Time(1ms), false, evidence));
  CHECK(is_lost(first + 6, Time(1ms), false, evidence));
}

TEST_CASE("fast: a packet sent again is lost again when a new one that left later has arrived") {
  const Psn first = Psn::first(100);
  SentAgain sent_again(first);
  sent_again.sent_again(first + 2);
  const auto lost = [&](Time sent, Time newest) {
    return is_lost(first + 2, sent, true, sent_again.evidence(first + 20, newest));
  };
  CHECK_FALSE(lost(Time(10ms), Time{}));
  CHECK_FALSE(lost(Time(10ms), Time(9ms)));
  CHECK(lost(Time(10ms), Time(10ms)));  // left in one burst
  CHECK(lost(Time(10ms), Time(11ms)));
}

TEST_CASE("a TPSACK reports packets within its bitmap only, up to MaxRcvPSN") {
  const Psn through = Psn::first(0xffffff);
  CHECK(transport::last_reported(through, through + 5, 64) == through + 5);
  CHECK(transport::last_reported(through, through + 63, 64) == through + 63);
  CHECK(transport::last_reported(through, through + 64, 64) == through + 63);
  CHECK(transport::last_reported(through, through + 2000, 1024) == through + 1023);
  CHECK(transport::last_reported(through, through - 5, 64) == through);
}

TEST_CASE("time-outs: fixed, doubled as in UB, measured") {
  const RttEstimator rtt(10ms);
  const Retransmission fixed = {.rto = Retransmission::Rto::fixed, .rto_base = 512us};
  const Retransmission doubled = {
      .rto = Retransmission::Rto::doubled, .rto_exponent = 3, .rto_base = 20us};
  for (unsigned tries = 0; tries < 300; ++tries) {
    CHECK(time_out(fixed, rtt, tries, 1ms) == 512us);
    CHECK(time_out({}, rtt, tries, 1ms) == rtt.timeout(tries, 1ms));
  }
  // The example of UB: Base 20 us, N 3.
  unsigned tries = 0;
  for (const Duration expected : {20us, 160us, 1280us, 10'240us, 81'920us, 200'000us, 200'000us}) {
    CHECK(time_out(doubled, rtt, tries++, 1ms) == expected);
  }
  CHECK(time_out(doubled, rtt, 255, 1ms) == 200ms);
}

}  // namespace
}  // namespace urma::test
