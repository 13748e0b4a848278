// SPDX-License-Identifier: Apache-2.0
#include "congestion/aimd.h"

#include "tests/catch.h"
#include "tests/unit/child.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;
using congestion::Acknowledged;
using congestion::Aimd;
using congestion::Lost;
using congestion::Settings;

constexpr Settings settings{.packet_bytes = 1000, .limit_bytes = 1'000'000};

// Simulates one round trip, in which the whole window is sent and acknowledged packet by packet.
void full_round(Aimd& aimd) {
  const uint64_t window = aimd.window_bytes();
  for (uint64_t at = 0; at < window / 1000; ++at) {
    aimd.handle(Acknowledged{
        .now = Time(1s), .rtt = 1ms, .bytes = 1000, .inflight_bytes = aimd.window_bytes()});
  }
}

Lost lost_at(Time now) { return {.now = now, .rtt = 10ms, .bytes = 1000, .timed_out = false}; }

TEST_CASE("the window starts with 32 packets and doubles each round trip until it is full") {
  Aimd aimd(settings);
  REQUIRE(aimd.window_bytes() == 32'000);
  for (uint64_t expected : {64'000, 128'000, 256'000, 512'000, 1'000'000, 1'000'000}) {
    full_round(aimd);
    CHECK(aimd.window_bytes() == expected);
  }
}

TEST_CASE("loss takes three tenths of the window, and from then on it grows by a packet a round") {
  Aimd aimd(settings);
  for (int i = 0; i < 3; ++i) full_round(aimd);
  aimd.handle(lost_at(Time(1s)));
  CHECK(aimd.window_bytes() == 256'000 * 7 / 10);
  uint64_t before = aimd.window_bytes();
  for (int round = 0; round < 20; ++round) {
    full_round(aimd);
    CHECK(aimd.window_bytes() > before + 800);
    CHECK(aimd.window_bytes() <= before + 1000);
    before = aimd.window_bytes();
  }
}

TEST_CASE("losses of one round trip shrink the window once, those of the next one once more") {
  Aimd aimd(settings);
  for (int i = 0; i < 3; ++i) full_round(aimd);
  aimd.handle(lost_at(Time(1s)));
  const uint64_t once = aimd.window_bytes();
  aimd.handle(lost_at(Time(1s)));
  aimd.handle(lost_at(Time(1s) + 10ms - 1ns));
  CHECK(aimd.window_bytes() == once);
  aimd.handle(lost_at(Time(1s) + 10ms));
  CHECK(aimd.window_bytes() == once * 7 / 10);
}

TEST_CASE("a time-out leaves a window of four packets, and slow start goes up to the threshold") {
  Aimd aimd(settings);
  for (int i = 0; i < 3; ++i) full_round(aimd);
  Lost silence = lost_at(Time(1s));
  aimd.handle(silence);
  const uint64_t reduced = aimd.window_bytes();
  // This holds also within a round trip of a loss, because no packet at all is received.
  silence.timed_out = true;
  aimd.handle(silence);
  CHECK(aimd.window_bytes() == 4000);
  full_round(aimd);
  CHECK(aimd.window_bytes() == 8000);
  for (int i = 0; i < 4; ++i) full_round(aimd);
  CHECK(aimd.window_bytes() > 8000 * 8);
  // Doubling ends at the threshold that the loss has set.
  CHECK(aimd.window_bytes() <= reduced * 7 / 10 + 4000);
}

TEST_CASE("a window of which less than half is used does not grow") {
  Aimd aimd(settings);
  for (int i = 0; i < 1000; ++i) {
    aimd.handle(Acknowledged{.now = Time(1s), .rtt = 1ms, .bytes = 1000, .inflight_bytes = 15'999});
  }
  CHECK(aimd.window_bytes() == 32'000);
  aimd.handle(Acknowledged{.now = Time(1s), .rtt = 1ms, .bytes = 1000, .inflight_bytes = 16'000});
  CHECK(aimd.window_bytes() == 33'000);
}

TEST_CASE("feedback without news of arrivals changes nothing") {
  Aimd aimd(settings);
  const congestion::Feedback feedback{.marked_packets = 3};
  aimd.handle(Acknowledged{
      .now = Time(1s), .rtt = 1ms, .bytes = 0, .inflight_bytes = 32'000, .feedback = &feedback});
  CHECK(aimd.window_bytes() == 32'000);
}

TEST_CASE("whatever is lost, the window holds four packets, so that a gap can be detected") {
  Aimd aimd(settings);
  for (int i = 0; i < 100; ++i) aimd.handle(lost_at(Time(1s) + i * 1s));
  CHECK(aimd.window_bytes() == 4000);
}

TEST_CASE("a receiver that buffers less than four packets is not sent more than it buffers") {
  for (const uint64_t limit : {1, 999, 1000, 3999}) {
    Aimd aimd({.packet_bytes = 1000, .limit_bytes = limit});
    CHECK(aimd.window_bytes() == limit);
    full_round(aimd);
    aimd.handle(lost_at(Time(1s)));
    CHECK(aimd.window_bytes() == limit);
  }
}

// The limit is what a peer wrote into its OPEN or ACCEPT.
TEST_CASE("a receiver that offers no buffer does not crash the sender") {
  CHECK(survives([] {
    Aimd aimd({.packet_bytes = 1000, .limit_bytes = 0});
    aimd.handle(Acknowledged{.now = Time(1s), .rtt = 1ms, .bytes = 1000, .inflight_bytes = 1000});
  }));
}

}  // namespace
}  // namespace urma::test
