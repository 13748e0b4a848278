// SPDX-License-Identifier: Apache-2.0
// A port whose queue pair fails or is slow: what settles, and which buffers it receives into.

#include "tests/catch.h"
#include "tests/drivers/ports.h"
#include "tests/verbs/soft_adapters.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;
using soft::Failure;

// Two ports of two adapters, of which one can fail alone.
struct TwoAdapters {
  struct Both : soft::OnlyAdapter {
    Both() { soft::plug_in({.name = "soft1", .addresses = {ipv4(10, 9, 0, 2)}}); }
  };
  Both adapters;
  PortPair ports{"verbs:soft0", "verbs:soft1"};

  bool reaches(unsigned seed) {
    const Packet packet = packet_of(300, seed);
    if (!send_packet(ports, *ports.a, ports.b->facts().self, packet)) return false;
    const auto arrived = receive_packets(ports, *ports.b, 1, 5s);
    return arrived.size() == 1 && arrived[0] == packet;
  }
};

TEST_CASE("a port finds a queue pair that has failed silently when it sends, and resets it") {
  TwoAdapters both;
  PortPair& ports = both.ports;
  for (unsigned i = 0; i < 20; ++i) {
    REQUIRE(both.reaches(i));
    CHECK(soft::fail_queue_pairs("soft0", Failure::silent) == 1);
    REQUIRE(send_packet(ports, *ports.a, ports.b->facts().self, packet_of(100, i)));
    CHECK(ports.a->settled() == 2 * (i + 1));
  }
  CHECK(both.reaches(20));
}

TEST_CASE("a queue pair that fails again while it is reset is reset again") {
  TwoAdapters both;
  PortPair& ports = both.ports;
  REQUIRE(both.reaches(0));
  soft::fail_starts(3);
  CHECK(soft::fail_queue_pairs("soft0", Failure::silent) == 1);
  REQUIRE(send_packet(ports, *ports.a, ports.b->facts().self, packet_of(100, 1)));
  CHECK(both.reaches(1));
}

TEST_CASE("a port whose queue pair never starts again loses packets, and settles them") {
  TwoAdapters both;
  PortPair& ports = both.ports;
  REQUIRE(both.reaches(0));
  soft::fail_starts(1000);
  CHECK(soft::fail_queue_pairs("soft0", Failure::silent) == 1);
  for (unsigned i = 1; i <= 1000; ++i) {
    REQUIRE(send_packet(ports, *ports.a, ports.b->facts().self, packet_of(100, i)));
    CHECK(ports.a->settled() == i + 1);
  }
  CHECK(ports.a->counters().send_failures >= 998);
}

TEST_CASE("a frame settles when the adapter has read it, and not before") {
  TwoAdapters both;
  PortPair& ports = both.ports;
  REQUIRE(both.reaches(0));
  soft::send_late(10);
  for (unsigned i = 0; i < 4; ++i) {
    REQUIRE(send_packet(ports, *ports.a, ports.b->facts().self, packet_of(2000, i)));
  }
  CHECK(ports.a->settled() == 1);
  const auto arrived = receive_packets(ports, *ports.b, 4, 5s);
  REQUIRE(arrived.size() == 4);
  for (unsigned i = 0; i < 4; ++i) CHECK(arrived[i] == packet_of(2000, i));
  for (int i = 0; i < 100; ++i) ports.a->receive({}, ports.now());
  CHECK(ports.a->settled() == 5);
}

TEST_CASE("a buffer that the engine holds is not received into, although the queue pair is reset") {
  TwoAdapters both;
  PortPair& ports = both.ports;
  REQUIRE(both.reaches(0));
  const Packet kept(300, std::byte{0x5a});
  REQUIRE(send_packet(ports, *ports.a, ports.b->facts().self, kept));
  RxFrame frame;
  REQUIRE(ports.b->receive({&frame, 1}, ports.now()) == 1);
  CHECK(soft::fail_queue_pairs("soft1", Failure::reported) == 1);
  CHECK(receive_packets(ports, *ports.b, 1, 100ms).empty());  // the event comes by a thread
  for (unsigned i = 0; i < 3000; ++i) REQUIRE(both.reaches(i));
  CHECK(std::ranges::equal(std::span(frame.data, frame.bytes), kept));
  ports.b->release({&frame, 1});
  CHECK(both.reaches(0));
}

}  // namespace
}  // namespace urma::test
