// SPDX-License-Identifier: Apache-2.0
// Invalid datagrams at a port: a million within one process, between the packets of a transfer that
// is checked byte by byte, and a hundred thousand on a real socket. Half of them have the right
// ICRC, so they pass the first check.

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "drivers/sim/port.h"
#include "drivers/udp/udp_socket.h"
#include "tests/catch.h"
#include "tests/fuzz/garbage_port.h"
#include "tests/fuzz/node.h"
#include "tests/sanitized.h"
#include "urma/urma.hpp"

namespace urma::fuzz {
namespace {

using namespace std::chrono_literals;

void fill(std::span<std::byte> bytes, uint64_t seed) {
  Prng prng(seed);
  for (size_t i = 0; i + 8 <= bytes.size(); i += 8) {
    const uint64_t word = prng.next();
    std::memcpy(&bytes[i], &word, 8);
  }
}

uint64_t dropped(const Statistics& statistics) {
  return statistics.dropped_icrc + statistics.dropped_malformed +
         statistics.dropped_unknown_channel + statistics.dropped_other;
}

// Two nodes on a simulated wire. Each receives garbage between its packets.
struct GarbageWorld {
  std::shared_ptr<drivers::sim::Network> network =
      std::make_shared<drivers::sim::Network>(uint64_t{7});
  Garbage garbage{42};
  std::array<GarbagePort::Counts, 2> counts;
  Node left{port(0), 64 * 1024, 1};
  Node right{port(1), 64 * 1024, 2};
  std::vector<std::byte> source = std::vector<std::byte>(64 * 1024);
  std::vector<std::byte> back = std::vector<std::byte>(64 * 1024);

  std::unique_ptr<drivers::PacketPort> port(size_t side) {
    auto inner = drivers::sim::Port::open(network, {});
    return std::make_unique<GarbagePort>(std::move(*inner), garbage, counts[side]);
  }
  bool untouched() const { return left.surroundings_untouched() && right.surroundings_untouched(); }
};

TEST_CASE("a million false datagrams change nothing, and are counted") {
  constexpr uint64_t datagrams = test::sanitized ? 200'000 : 700'000;
  GarbageWorld world;
  const RemoteSegment there = world.left.import(world.right);
  REQUIRE(world.left.run(write(std::as_bytes(std::span(world.source)).first(8), there)).ok());

  for (GarbagePort::Counts& counts : world.counts) counts.left = datagrams / 2;
  uint64_t rounds = 0;
  for (; world.counts[0].left + world.counts[1].left > 0; ++rounds) {
    fill(world.source, rounds);
    REQUIRE(world.left.run(write(world.source, there)).ok());
    REQUIRE(std::ranges::equal(world.right.segment(), world.source));
    REQUIRE(world.left.run(read(world.back, there)).ok());
    REQUIRE(world.back == world.source);
  }
  CHECK(rounds > 100);
  CHECK(world.untouched());
  for (Node* node : {&world.left, &world.right}) {
    const GarbagePort::Counts& counts = world.counts[node == &world.right];
    const Statistics statistics = node->statistics();
    CHECK(statistics.dropped_icrc + statistics.dropped_malformed >= counts.unsealed);
    // Packets with a valid ICRC are dropped too, unless they are set-up messages that may be
    // genuine.
    CHECK(dropped(statistics) >= counts.unsealed + counts.sealed / 2);
    CHECK(statistics.channels_lost == 0);
  }
}

TEST_CASE("300 000 forged packets on a channel affect nothing outside that channel") {
  constexpr uint64_t datagrams = test::sanitized ? 100'000 : 300'000;
  GarbageWorld world;
  RemoteSegment there = world.left.import(world.right);
  for (GarbagePort::Counts& counts : world.counts) {
    counts.left = datagrams / 2;
    counts.forged = true;
  }
  // Whatever happens to a work, it ends, and no other memory is touched.
  for (uint64_t i = 0; world.counts[0].left + world.counts[1].left > 0; ++i) {
    fill(world.source, i);
    const Work work = i % 2 == 0 ? write(world.source, there) : read(world.back, there);
    const Completion completion = world.left.run(work);
    REQUIRE(completion.status != Status::timed_out);
    // A device that believes a forged restart opens a channel to the present peer.
    if (completion.status == Status::peer_restarted) there = world.left.import(world.right);
  }
  CHECK(world.untouched());
  // After the forgeries end, the peer is served again, at the latest when its silence times out.
  bool served = false;
  for (int tries = 0; tries < 20 && !served; ++tries) {
    served = world.left.run(write(world.source, world.left.import(world.right))).ok();
  }
  CHECK(served);
  CHECK(std::ranges::equal(world.right.segment(), world.source));
}

// A plain socket of an attacker.
class Stranger {
 public:
  explicit Stranger(const Eid& address) : socket_(::socket(AF_INET, SOCK_DGRAM, 0)) {
    SocketAddress at{};
    socklen_t length = to_sockaddr({address, 0}, at);
    bound_ = bind(socket_, &at.any, length) == 0;
    getsockname(socket_, &at.any, &length);
    self_ = from_sockaddr(at.any);
  }
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;
  ~Stranger() { close(socket_); }

  bool bound() const { return bound_; }
  const Endpoint& self() const { return self_; }
  bool send(const Packet& packet) {
    SocketAddress to{};
    const socklen_t length = to_sockaddr(packet.to, to);
    return sendto(socket_, packet.bytes.data(), packet.bytes.size(), 0, &to.any, length) >= 0;
  }

 private:
  int socket_;
  bool bound_ = false;
  Endpoint self_;
};

// Devices of two processes on sockets. A stranger sends to both while one writes to the other.
void withstand(uint64_t datagrams, const char* owner_device, const char* writer_device) {
  constexpr uint64_t at_once = 64;
  constexpr size_t guard = 4096;
  std::vector<std::byte> memory(64 * 1024 + 2 * guard, std::byte{0xcd});
  const std::vector<std::byte> before = memory;
  const auto inside = std::span(memory).subspan(guard, 64 * 1024);
  std::vector<std::byte> source(inside.size());

  Device owner = open(owner_device).value();
  Device writer = open(writer_device).value();
  Segment segment = owner.register_memory(inside).value();
  Jetty jetty = writer.jetty().value();
  const RemoteSegment there = writer.import(segment.descriptor()).value().segment;

  Stranger stranger(ipv4(127, 0, 0, 233));
  REQUIRE(stranger.bound());
  Garbage garbage(43);
  uint64_t sent = 0;
  for (uint64_t rounds = 0; sent < datagrams; ++rounds) {
    for (uint64_t i = 0; i < at_once; ++i) {
      const Endpoint to = (i % 2 == 0 ? owner : writer).endpoint();
      sent += stranger.send(i % 4 < 2 ? garbage.unsealed(stranger.self(), to)
                                      : garbage.from_stranger(stranger.self(), to));
    }
    for (const Device* to : {&owner, &writer}) {
      sent += stranger.send(garbage.jumbo(stranger.self(), to->endpoint()));
    }
    fill(source, rounds);
    REQUIRE(jetty.post(write(source, there)) == 1);
    const auto completions = jetty.wait(10s);
    REQUIRE(completions.size() == 1);
    REQUIRE(completions[0].ok());
    REQUIRE(std::ranges::equal(inside, source));
  }
  CHECK(std::equal(memory.begin(), memory.begin() + guard, before.begin()));
  CHECK(std::equal(memory.end() - guard, memory.end(), before.end() - guard));
  // The kernel drops datagrams that do not fit in a socket's buffer, without reporting it.
  const uint64_t counted = dropped(owner.stats().value()) + dropped(writer.stats().value());
  CHECK(counted > sent / 3);
}

TEST_CASE("a hundred thousand false datagrams on a socket change nothing, and are counted") {
  withstand(test::sanitized ? 30'000 : 100'000, "udp:127.0.0.231", "udp:127.0.0.232");
}

TEST_CASE(
    "100 000 false datagrams change nothing when a wrapper delays, repeats and reorders packets") {
  withstand(30'000, "fault(in.delay=20us,in.dup=5%,seed=3):udp:127.0.0.234",
            "fault(in.jitter=50us,in.reorder=5%,seed=4):udp:127.0.0.235");
}

}  // namespace
}  // namespace urma::fuzz
