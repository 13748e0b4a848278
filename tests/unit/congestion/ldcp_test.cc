// SPDX-License-Identifier: Apache-2.0
#include "congestion/ldcp.h"

#include <cmath>

#include "tests/catch.h"
#include "tests/unit/congestion/script.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;
using congestion::Feedback;
using congestion::Ldcp;

void acknowledge(Ldcp& ldcp, uint64_t bytes, uint64_t marked) {
  const Feedback feedback{.marked_bytes = marked};
  ldcp.handle(congestion::Acknowledged{.now = Time(1s),
                                       .rtt = 100us,
                                       .bytes = bytes,
                                       .inflight_bytes = ldcp.window_bytes(),
                                       .feedback = &feedback});
}

TEST_CASE("ldcp starts with all that the path holds, or 32 packets if that is unknown") {
  CHECK(Ldcp(small_packets).window_bytes() == 100'000);
  CHECK(Ldcp({.packet_bytes = 1000}).window_bytes() == 32'000);
}

TEST_CASE("a window of bytes without marks adds a packet, and a marked packet takes half of it") {
  Ldcp ldcp(small_packets);
  for (int i = 0; i < 100; ++i) acknowledge(ldcp, 1000, 0);
  CHECK(ldcp.window_bytes() > 100'980);
  CHECK(ldcp.window_bytes() <= 101'000);
  const uint64_t before = ldcp.window_bytes();
  acknowledge(ldcp, 1000, 1000);
  CHECK(ldcp.window_bytes() == before - 500);
}

TEST_CASE("one acknowledgement takes at most half of a window, which holds at least a packet") {
  Ldcp ldcp(small_packets);
  acknowledge(ldcp, 1'000'000, 1'000'000);
  CHECK(ldcp.window_bytes() == 50'000);
  for (int i = 0; i < 20; ++i) acknowledge(ldcp, 1'000'000, 1'000'000);
  CHECK(ldcp.window_bytes() == 1000);
}

TEST_CASE("marks that an acknowledgement without new bytes reports count") {
  Ldcp ldcp(small_packets);
  acknowledge(ldcp, 0, 1000);
  CHECK(ldcp.window_bytes() == 99'500);
}

TEST_CASE("a loss halves the window of ldcp once in a round, which can be undone") {
  Ldcp ldcp(small_packets);
  const congestion::Lost lost{.now = Time(1s), .rtt = 100us, .bytes = 1000, .timed_out = false};
  ldcp.handle(lost);
  ldcp.handle(lost);
  CHECK(ldcp.window_bytes() == 50'000);
  ldcp.handle(congestion::Spurious{.now = Time(1s)});
  CHECK(ldcp.window_bytes() == 100'000);
  ldcp.handle(congestion::Lost{.now = Time(1s), .rtt = 100us, .bytes = 0, .timed_out = true});
  CHECK(ldcp.window_bytes() == 1000);
  // Marks that come afterwards are not undone.
  acknowledge(ldcp, 1000, 1000);
  const uint64_t left = ldcp.window_bytes();
  ldcp.handle(congestion::Spurious{.now = Time(1s)});
  CHECK(ldcp.window_bytes() == left);
}

}  // namespace
}  // namespace urma::test
