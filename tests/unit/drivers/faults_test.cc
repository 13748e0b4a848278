// SPDX-License-Identifier: Apache-2.0
#include "drivers/sim/faults.h"

#include <algorithm>

#include "drivers/frame_pool.h"
#include "tests/catch.h"

namespace urma::drivers::sim {
namespace {

Endpoint endpoint_number(int n) {
  Endpoint at;
  at.address.bytes[15] = static_cast<std::byte>(n);
  return at;
}

TEST_CASE("a cut loses packets in one direction, from a length on, until it is mended") {
  const Endpoint a = endpoint_number(1), b = endpoint_number(2), c = endpoint_number(3);
  Faults faults;
  CHECK(!faults.is_cut(a, b, 100));

  faults.cut(a, b, true);
  CHECK(faults.is_cut(a, b, 1));
  CHECK(!faults.is_cut(b, a, 1));
  CHECK(!faults.is_cut(a, c, 1));

  // A second cut replaces the first one.
  faults.cut(a, b, true, 1000);
  CHECK(!faults.is_cut(a, b, 1000));
  CHECK(faults.is_cut(a, b, 1001));

  faults.cut(b, a, true);
  faults.cut(a, b, false);
  CHECK(!faults.is_cut(a, b, 9000));
  CHECK(faults.is_cut(b, a, 9000));
}

TEST_CASE("a packet is shown as it leaves: its head, its pieces and its sender") {
  FramePool pool{1};
  TxFrame* frame = nullptr;
  REQUIRE(pool.lend({&frame, 1}) == 1);
  constexpr std::string_view head = "head", piece = "and a piece";
  std::ranges::copy(std::as_bytes(std::span(head)), frame->head);
  frame->head_bytes = head.size();
  frame->pieces[0] = {std::as_bytes(std::span(piece)).data(), piece.size()};
  frame->piece_count = 1;

  Faults faults;
  faults.show(endpoint_number(1), *frame);  // nothing looks
  std::string seen;
  Endpoint sender;
  faults.on_leave = [&](const Endpoint& from, std::span<const std::byte> packet) {
    sender = from;
    seen.assign(reinterpret_cast<const char*>(packet.data()), packet.size());
  };
  faults.show(endpoint_number(7), *frame);
  CHECK(seen == "headand a piece");
  CHECK(sender == endpoint_number(7));
  pool.take_back(frame);
}

}  // namespace
}  // namespace urma::drivers::sim
