// SPDX-License-Identifier: Apache-2.0
// Datagrams that no device of liburma sends.

#include "base/prng.h"
#include "tests/catch.h"
#include "tests/drivers/ports.h"
#include "tests/fresh_seed.h"
#include "tests/verbs/soft_adapters.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view first = "verbs:soft0?service=5001";
constexpr std::string_view second = "verbs:soft0?service=5002";

Packet front(uint16_t service) {
  return {std::byte{0x55},
          std::byte{0x42},
          std::byte(service >> 8),
          std::byte(service & 0xff),
          {},
          {},
          {},
          {}};
}

TEST_CASE("any bytes may arrive: they are counted or handed up, and no buffer is lost") {
  const soft::OnlyAdapter adapter;
  PortPair ports(first, second);
  const uint32_t pair = soft::receiving_pairs().front();
  Prng prng(fresh_seed());
  uint64_t handed = 0;
  uint64_t right = 0;
  constexpr uint64_t count = 20'000;  // many times the number of buffers
  for (uint64_t i = 0; i < count; ++i) {
    Packet bytes = packet_of(prng.below(200), static_cast<unsigned>(i));
    const Packet begin = front(static_cast<uint16_t>(prng.below(3)));
    if (prng.below(2) == 0) bytes.insert(bytes.begin(), begin.begin(), begin.end());
    for (uint64_t flips = prng.below(2); flips > 0 && !bytes.empty(); --flips) {
      bytes[prng.below(bytes.size())] ^= std::byte(1 + prng.below(255));
    }
    const bool routed = prng.below(8) != 0;
    REQUIRE(soft::deliver({.from = ipv4(10, 9, 0, uint8_t(prng.below(255))),
                           .from_pair = static_cast<uint32_t>(prng.below(30)),
                           .to_pair = pair,
                           .bytes = bytes,
                           .routed = routed}));
    right += routed && bytes.size() > 8 && bytes[0] == begin[0] && bytes[1] == begin[1] &&
             (bytes[2] | bytes[3]) != std::byte{0};
    std::array<RxFrame, 4> frames;
    const size_t got = ports.a->receive(frames, read_clock());
    for (size_t n = 0; n < got; ++n) {
      CHECK(frames[n].bytes > 0);
      CHECK(frames[n].from->port != 0);
    }
    ports.a->release(std::span(frames).first(got));
    handed += got;
  }
  CHECK(handed > count / 8);
  CHECK(handed == right);
  CHECK(ports.a->counters().malformed + handed == count);
}

TEST_CASE("a datagram that names another's service does not change where packets to it go") {
  const soft::OnlyAdapter adapter;
  PortPair ports(first, second);
  const auto pairs = soft::receiving_pairs();
  REQUIRE(pairs.size() == 2);
  const auto reaches_second = [&](unsigned seed) {
    REQUIRE(send_packet(ports, *ports.a, ports.b->facts().self, packet_of(300, seed)));
    return receive_packets(ports, *ports.b, 1, 5s).size() == 1;
  };
  REQUIRE(reaches_second(1));
  Packet forged = front(5002);
  forged.resize(100, std::byte{1});
  for (unsigned i = 0; i < 20; ++i) {
    CHECK(soft::deliver(
        {.from = ipv4(10, 9, 0, 1), .from_pair = 12345, .to_pair = pairs[0], .bytes = forged}));
    CHECK(receive_packets(ports, *ports.a, 1, 5s).size() == 1);
    CHECK(reaches_second(i));
  }
}

}  // namespace
}  // namespace urma::test
