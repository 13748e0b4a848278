// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "congestion/controller.h"
#include "drivers/frame_pool.h"
#include "tests/catch.h"
#include "tests/fuzz/packet.h"
#include "tests/fuzz/tp_end.h"

namespace urma::test {
namespace {

using fuzz::End;

transport::Settings settings(uint8_t side) {
  const Eid eid = ipv4(127, 0, 0, static_cast<uint8_t>(1 + side));
  return {.self = {eid, ub_port},
          .eid = eid,
          .life = Incarnation(10u + side),
          .mtu = 1024,
          .buffer_bytes = 4'000'000,
          .controller = &congestion::controllers()[0],
          .peers = 3,
          .packets = 2048,
          .slices = 2048};
}

// The two ends of a wire that loses no packet.
struct Pair {
  End left{settings(0), 1, true};
  End right{settings(1), 2, true};
  drivers::FramePool pool{64};
  std::array<TxFrame*, 64> frames{};
  Time now{std::chrono::seconds(1)};

  Pair() {
    left.other = &right;
    right.other = &left;
    pool.lend(frames);
    left.connect(right.self, now);
    for (int rounds = 0; rounds < 10 && right.channel == nullptr; ++rounds) {
      pass(left, right, 64);
      pass(right, left, 64);
    }
    REQUIRE(left.channel != nullptr);
    REQUIRE(right.channel != nullptr);
  }

  // Carries one burst from one end to the other.
  void pass(End& from, End& to, size_t most) {
    const size_t filled = from.transport.fill(from, std::span(frames).first(most), now);
    for (TxFrame* frame : std::span(frames).first(filled)) {
      const fuzz::Packet packet = fuzz::gathered(*frame, from.self);
      const RxFrame arrived = fuzz::received(packet);
      to.transport.receive({&arrived, 1}, now);
    }
  }
};

// An end with much to send must not starve acknowledgements: without them, the other end sends all
// of its packets again.
TEST_CASE("an end with much to send acknowledges received packets in its next burst") {
  for (const size_t burst : {64u, 8u, 1u}) {
    Pair ends;
    for (int i = 0; i < 900; ++i) ends.left.offer(transport::Class::request, 100);
    for (int i = 0; i < 16; ++i) ends.right.offer(transport::Class::request, 100);
    ends.pass(ends.right, ends.left, 64);
    const uint64_t before = ends.left.transport.counters().acks_sent;
    ends.pass(ends.left, ends.right, burst);
    CHECK(ends.left.transport.counters().acks_sent == before + 1);
    CHECK(ends.right.finished());
  }
}

}  // namespace
}  // namespace urma::test
