// SPDX-License-Identifier: Apache-2.0
#include "drivers/sim/packets.h"

#include <cstring>
#include <vector>

#include "tests/catch.h"

namespace urma::drivers::sim {
namespace {

TEST_CASE("a network has as many packets as it says, each with bytes of its own") {
  Packets packets;
  std::vector<bool> taken(Packets::capacity);
  bool distinct = true;
  for (uint32_t i = 0; i < Packets::capacity; ++i) {
    const uint32_t packet = packets.take();
    REQUIRE(packet < Packets::capacity);
    distinct = distinct && !taken[packet];
    taken[packet] = true;
  }
  CHECK(distinct);
  CHECK(packets.take() == Packets::none);

  std::memset(packets.bytes_of(5), 1, Packets::largest);
  std::memset(packets.bytes_of(6), 2, Packets::largest);
  CHECK(packets.bytes_of(5)[Packets::largest - 1] == std::byte{1});
  packets[5].bytes = 77;
  CHECK(packets[6].bytes == 0);

  packets.put_back(5);
  CHECK(packets.take() == 5);
  CHECK(packets.take() == Packets::none);
}

}  // namespace
}  // namespace urma::drivers::sim
