// SPDX-License-Identifier: Apache-2.0
// The promises that every driver keeps. The suite runs on each driver that is built
// (conformance_pairs.h).

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <set>
#include <thread>

#include "tests/catch.h"
#include "tests/drivers/conformance_pairs.h"
#include "tests/drivers/ports.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;
using drivers::PacketPort;

// This device reads memory late and settles even later. Any port may do this, and the port of a NIC
// does.
constexpr std::string_view late =
    "fault(hold=20us,hold_jitter=20us,settle=30us,settle_jitter=30us,ring=150):";

// Calls `function` with the ports of each pair, directly and behind a wrapper that is late.
template <class Function>
void for_each_driver(Function&& function) {
  for_each_pair([&](const std::string& first, const std::string& second) {
    for (const std::string& wrapper : {std::string(), std::string(late)}) {
      INFO("device " << wrapper << first);
      PortPair ports(wrapper + first, wrapper + second);
      function(ports);
    }
  });
}

std::vector<TxFrame*> lend_all(PacketPort& port) {
  std::vector<TxFrame*> frames;
  TxFrame* frame = nullptr;
  while (port.lend({&frame, 1}) == 1) frames.push_back(frame);
  return frames;
}

TEST_CASE("a port states the properties of its medium") {
  for_each_driver([](PortPair& ports) {
    for (const PacketPort* port : {ports.a.get(), ports.b.get()}) {
      const drivers::PortFacts& facts = port->facts();
      CHECK(std::has_single_bit(facts.mtu));
      CHECK(facts.mtu >= 1024);
      CHECK(facts.mtu <= (facts.lossless ? 65536 : largest_rtp_mtu));
      CHECK(facts.buffer_bytes >= 64 * 1024);
      CHECK(facts.self.port != 0);
      CHECK_FALSE(facts.eid == Eid{});
      CHECK_FALSE(facts.description.empty());
    }
    CHECK_FALSE(ports.a->facts().eid == ports.b->facts().eid);
    CHECK_FALSE(ports.a->facts().self == ports.b->facts().self);
  });
}

TEST_CASE("a frame is lent once at a time, and again after it was returned") {
  for_each_driver([](PortPair& ports) {
    const auto first = lend_all(*ports.a);
    CHECK(first.size() >= 128);
    CHECK(std::set(first.begin(), first.end()).size() == first.size());
    for (const TxFrame* frame : first) CHECK(frame->head != nullptr);
    ports.a->unlend(first);
    CHECK(lend_all(*ports.a).size() == first.size());
    ports.a->unlend(first);
  });
}

TEST_CASE("packets of every size and form arrive unchanged, with their sender's address") {
  for_each_driver([](PortPair& ports) {
    const size_t largest = ports.a->facts().mtu + 75;
    unsigned seed = 0;
    for (const size_t bytes :
         {size_t{20}, size_t{44}, size_t{45}, size_t{132}, size_t{1400}, largest}) {
      for (const unsigned pieces : {1u, 2u, max_pieces}) {
        INFO("bytes " << bytes << " pieces " << pieces);
        const Packet packet = packet_of(bytes, ++seed);
        REQUIRE(send_packet(ports, *ports.a, ports.b->facts().self, packet, pieces));
        RxFrame frame;
        const Time until = ports.now() + std::chrono::seconds(1);
        while (ports.b->receive({&frame, 1}, ports.now()) == 0 && ports.now() < until)
          ports.pass_time();
        REQUIRE(frame.bytes == bytes);
        CHECK(std::equal(packet.begin(), packet.end(), frame.data));
        CHECK(*frame.from == ports.a->facts().self);
        ports.b->release({&frame, 1});
      }
    }
  });
}

TEST_CASE("bursts of mixed sizes to mixed destinations arrive, each packet whole") {
  for_each_driver([](PortPair& ports) {
    // There are rows of equal sizes, single sizes, and shrinking sizes: segmentation offload must
    // handle all of them.
    const size_t sizes[] = {132,  132,  132, 28, 132, 132, 1100, 1100,
                            1100, 1100, 400, 20, 28,  28,  1000, 999};
    std::vector<Packet> sent;
    std::vector<TxFrame*> frames(std::size(sizes));
    REQUIRE(ports.a->lend(frames) == frames.size());
    for (size_t i = 0; i < std::size(sizes); ++i) {
      sent.push_back(packet_of(sizes[i], static_cast<unsigned>(i)));
    }
    for (size_t i = 0; i < std::size(sizes); ++i) {
      const std::span<std::byte> memory = ports.memory.keep(*ports.a, sent[i]);
      frames[i]->head_bytes = 16;
      std::copy_n(sent[i].begin(), 16, frames[i]->head);
      frames[i]->piece_count = 1;
      frames[i]->tail_bytes = 0;
      frames[i]->pieces[0] = {memory.data() + 16, static_cast<uint32_t>(sizes[i] - 16)};
      frames[i]->to = i == 4 ? ports.a->facts().self : ports.b->facts().self;
    }
    for (size_t done = 0; done < frames.size();) {
      done += ports.a->send(std::span(frames).subspan(done), ports.now());
      ports.pass_time();
    }
    auto arrived = receive_packets(ports, *ports.b, std::size(sizes) - 1);
    auto to_self = receive_packets(ports, *ports.a, 1);
    // An arrival may be a late packet for another program that had this address before.
    while (to_self.size() == 1 && to_self[0] != sent[4]) {
      to_self = receive_packets(ports, *ports.a, 1);
    }
    REQUIRE(to_self.size() == 1);
    CHECK(to_self[0] == sent[4]);
    sent.erase(sent.begin() + 4);
    std::sort(sent.begin(), sent.end());
    std::sort(arrived.begin(), arrived.end());
    CHECK(arrived == sent);
  });
}

// A port may send and receive packets of one size together; those with unlike fields must not mix.
TEST_CASE("a packet arrives with its ECN field if the port carries it, and as Not-ECT otherwise") {
  for_each_driver([](PortPair& ports) {
    REQUIRE(ports.a->facts().carries.ecn == ports.b->facts().carries.ecn);
    for (const size_t bytes : {size_t{60}, size_t{700}, size_t{1000}}) {
      for (const unsigned in_a_row : {1u, 3u, 8u}) {
        INFO("bytes " << bytes << ", in a row " << in_a_row);
        std::vector<Ecn> fields;
        for (unsigned i = 0; i < 32; ++i) fields.push_back(static_cast<Ecn>(i / in_a_row % 4));
        auto sent = send_ecn(ports, fields, bytes);
        for (EcnPacket& one : sent) {
          if (!ports.a->facts().carries.ecn) one.ecn = Ecn::not_ect;
        }
        auto arrived = receive_ecn(ports, sent.size());
        std::ranges::sort(sent);
        std::ranges::sort(arrived);
        CHECK((arrived == sent));
      }
    }
    for (const Ecn ecn : {Ecn::ect0, Ecn::ce, Ecn::not_ect, Ecn::ect1}) {
      const auto sent = send_ecn(ports, {ecn}, 50);
      const auto arrived = receive_ecn(ports, 1);
      REQUIRE(arrived.size() == 1);
      CHECK(arrived[0].ecn == (ports.b->facts().carries.ecn ? ecn : Ecn::not_ect));
    }
  });
}

TEST_CASE("every frame that was sent settles, in order, and can be lent again") {
  for_each_driver([](PortPair& ports) {
    const auto all = lend_all(*ports.a);
    ports.a->unlend(all);
    const Packet packet = packet_of(200, 1);
    constexpr unsigned count = 40;
    uint64_t settled = ports.a->settled();
    const uint64_t before = settled;
    for (unsigned i = 0; i < count; ++i) {
      REQUIRE(send_packet(ports, *ports.a, ports.b->facts().self, packet));
      const uint64_t now = ports.a->settled();
      CHECK(now >= settled);
      CHECK(now <= before + i + 1);
      settled = now;
    }
    CHECK(receive_packets(ports, *ports.b, count).size() == count);
    // In the end all frames have settled, although nothing more is sent.
    const Time until = ports.now() + std::chrono::seconds(10);
    while (ports.a->settled() < before + count && ports.now() < until) ports.pass_time();
    CHECK(ports.a->settled() == before + count);
    const auto again = lend_all(*ports.a);
    CHECK(again.size() == all.size());
    ports.a->unlend(again);
  });
}

// `send_packet` overwrites memory that has settled, so data that arrives unchanged was read before.
TEST_CASE("a port reads the memory of a frame until it has settled, and not after") {
  for_each_driver([](PortPair& ports) {
    const Endpoint there = ports.b->facts().self;
    std::vector<Packet> sent;
    std::vector<Packet> arrived;
    uint64_t settled = ports.a->settled();
    const uint64_t before = settled;
    while (sent.size() < 300) {
      const auto seed = static_cast<unsigned>(sent.size());
      const Packet packet = packet_of(60 + 37 * (seed % 28), seed);
      if (send_packet(ports, *ports.a, there, packet, 1 + seed % 3)) sent.push_back(packet);
      const uint64_t now = ports.a->settled();
      CHECK(now >= settled);
      CHECK(now <= before + sent.size());
      settled = now;
      // Every port has room for this many frames.
      if (sent.size() % 20 != 0) continue;
      auto some = receive_packets(ports, *ports.b, sent.size() - arrived.size());
      std::ranges::move(some, std::back_inserter(arrived));
    }
    std::ranges::sort(sent);
    std::ranges::sort(arrived);
    CHECK((arrived == sent));
  });
}

TEST_CASE("a destroyed port no longer reads memory") {
  for_each_driver([](PortPair& ports) {
    std::vector<Packet> sent;
    for (unsigned i = 0; i < 16; ++i) {
      sent.push_back(packet_of(200 + i, i));
      REQUIRE(send_packet(ports, *ports.b, ports.a->facts().self, sent.back()));
    }
    const Endpoint sender = ports.b->facts().self;
    ports.b.reset();
    ports.memory.reclaim_all();
    for (int i = 0; i < 100; ++i) ports.pass_time();
    std::array<RxFrame, 32> frames;
    const size_t count = ports.a->receive(frames, ports.now());
    for (const RxFrame& frame : std::span(frames).first(count)) {
      // Other tests may send to an address that was theirs a moment ago.
      if (*frame.from != sender) continue;
      const Packet packet(frame.data, frame.data + frame.bytes);
      CHECK(std::ranges::find(sent, packet) != sent.end());
    }
    ports.a->release(std::span(frames).first(count));
  });
}

TEST_CASE("received frames may be kept while others come, and released in any order") {
  for_each_driver([](PortPair& ports) {
    constexpr unsigned count = 24;
    for (unsigned i = 0; i < count; ++i) {
      REQUIRE(send_packet(ports, *ports.a, ports.b->facts().self, packet_of(100 + i, i)));
    }
    std::vector<RxFrame> kept;
    const Time until = ports.now() + std::chrono::seconds(1);
    while (kept.size() < count && ports.now() < until) {
      std::array<RxFrame, 5> frames;
      const size_t got = ports.b->receive(frames, ports.now());
      kept.insert(kept.end(), frames.begin(), frames.begin() + static_cast<ptrdiff_t>(got));
      if (got == 0) ports.pass_time();
    }
    REQUIRE(kept.size() == count);
    for (const RxFrame& frame : kept) {
      const Packet expected = packet_of(frame.bytes, frame.bytes - 100);
      CHECK(std::equal(expected.begin(), expected.end(), frame.data));
    }
    std::reverse(kept.begin(), kept.end());
    for (const RxFrame& frame : kept) ports.b->release({&frame, 1});
    REQUIRE(send_packet(ports, *ports.a, ports.b->facts().self, packet_of(64, 9)));
    CHECK(receive_packets(ports, *ports.b, 1).size() == 1);
  });
}

TEST_CASE("a flood without a receiver is dropped, and the port continues to work") {
  for_each_driver([](PortPair& ports) {
    const Packet packet = packet_of(1000, 3);
    // More than the receiver has room for.
    const uint32_t flood = 1000 + 2 * ports.b->facts().buffer_bytes / 1000;
    for (unsigned i = 0; i < std::min(flood, 20'000u); ++i) {
      if (!send_packet(ports, *ports.a, ports.b->facts().self, packet)) ports.pass_time();
    }
    while (!receive_packets(ports, *ports.b, 1000, 20ms).empty()) {
    }
    const Packet last = packet_of(77, 4);
    REQUIRE(send_packet(ports, *ports.a, ports.b->facts().self, last));
    std::vector<Packet> arrived;
    do {
      arrived = receive_packets(ports, *ports.b, 1);
      REQUIRE(arrived.size() == 1);
    } while (arrived[0] != last);
  });
}

// Sends the bytes to the port from a plain socket. Returns false if a socket cannot reach such a
// port; one behind a switch receives only what the switch sends.
bool send_from_outside(const PacketPort& port, const Packet& packet) {
  sockaddr_storage at{};
  socklen_t length = sizeof at;
  if (port.descriptors().empty() || is_switched(port.facts().self.address)) return false;
  if (getsockname(port.descriptors()[0], reinterpret_cast<sockaddr*>(&at), &length) != 0)
    return false;
  const int outside = socket(at.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  REQUIRE(sendto(outside, packet.data(), packet.size(), 0, reinterpret_cast<sockaddr*>(&at),
                 length) == static_cast<ssize_t>(packet.size()));
  close(outside);
  return true;
}

TEST_CASE("datagrams larger than any packet arrive whole or not at all, and harm no others") {
  for_each_driver([](PortPair& ports) {
    for (unsigned round = 0; round < 20; ++round) {
      std::vector<Packet> expected = {packet_of(1000, round), packet_of(9000, round + 100)};
      const Packet jumbo = packet_of(65'000, round + 200);
      if (!send_from_outside(*ports.b, expected[0])) return;
      send_from_outside(*ports.b, jumbo);
      send_from_outside(*ports.b, expected[1]);
      auto arrived = receive_packets(ports, *ports.b, 3);
      std::erase(arrived, jumbo);
      std::ranges::sort(arrived);
      std::ranges::sort(expected);
      CHECK((arrived == expected));
    }
  });
}

TEST_CASE("sending to an address without a receiver is not an error") {
  for_each_driver([](PortPair& ports) {
    Endpoint nobody = ports.b->facts().self;
    nobody.port = 9;
    for (unsigned i = 0; i < 200; ++i) send_packet(ports, *ports.a, nobody, packet_of(50, i));
    const Packet packet = packet_of(60, 1);
    REQUIRE(send_packet(ports, *ports.a, ports.b->facts().self, packet));
    CHECK(receive_packets(ports, *ports.b, 1).size() == 1);
  });
}

TEST_CASE("a descriptor becomes readable when a packet has come") {
  for_each_driver([](PortPair& ports) {
    if (ports.b->descriptors().empty()) return;
    // Each finds the other.
    REQUIRE(send_packet(ports, *ports.a, ports.b->facts().self, packet_of(60, 0)));
    REQUIRE(receive_packets(ports, *ports.b, 1).size() == 1);
    arm(ports, *ports.b);
    REQUIRE(send_packet(ports, *ports.a, ports.b->facts().self, packet_of(60, 1)));
    // Wrappers may hold the packet back, so receive until no arrival is due soon.
    const auto soon = [&] { return ports.now() + std::chrono::milliseconds(100); };
    while (ports.a->next_arrival() < soon()) ports.a->receive({}, ports.now());
    CHECK(readable(*ports.b, 1000));
    CHECK(receive_packets(ports, *ports.b, 1).size() == 1);
  });
}

// Sends single packets to a thread that goes to sleep for each. Returns false if one did not wake
// it.
bool wakes_for_each(PortPair& ports, PacketPort& from, PacketPort& to) {
  const unsigned rounds = to.facts().arms ? 1000 : 20;
  std::atomic<unsigned> awaited{0};
  std::atomic<bool> ended{false};
  std::thread sender([&] {
    for (unsigned round = 1; round <= rounds && !ended; ++round) {
      while (awaited < round && !ended) from.receive({}, ports.now());
      // The packet comes before, while and after the other thread goes to sleep.
      for (unsigned i = 0; i < round % 64; ++i) from.receive({}, ports.now());
      send_packet(ports, from, to.facts().self, packet_of(60, round));
    }
    while (!ended) from.receive({}, ports.now());
  });
  bool woken = true;
  for (unsigned round = 1; round <= rounds && woken; ++round) {
    awaited = round;
    for (size_t count = 0; count == 0 && woken;) {
      RxFrame frame;
      to.arm();
      count = to.receive({&frame, 1}, ports.now());
      to.release(std::span(&frame, count));
      // A wrapper may have to look again soon, whatever arrives.
      if (count == 0 && to.next_arrival() == never) woken = readable(to, 1000);
      to.disarm();
    }
  }
  ended = true;
  sender.join();
  return woken;
}

TEST_CASE("a thread that arms a port, receives and sleeps misses no packet") {
  for_each_driver([](PortPair& ports) {
    if (ports.b->descriptors().empty() || ports.clock() != nullptr) return;
    for (const bool back : {false, true}) {
      PacketPort& from = back ? *ports.b : *ports.a;
      PacketPort& to = back ? *ports.a : *ports.b;
      REQUIRE(send_packet(ports, from, to.facts().self, packet_of(60, 0)));
      REQUIRE(receive_packets(ports, to, 1).size() == 1);
      CHECK(wakes_for_each(ports, from, to));
    }
  });
}

// ---- properties that only some ports have

TEST_CASE(
    "a send wakes a thread that sleeps at a port's bell, and does not ring for one that is awake") {
  for_each_driver([](PortPair& ports) {
    Bell* const bell = ports.b->bell();
    if (bell == nullptr) return;
    const Packet packet = packet_of(100, 1);
    for (int round = 0; round < 20; ++round) {
      REQUIRE(send_packet(ports, *ports.a, ports.b->facts().self, packet));
      CHECK_FALSE(bell->drowsy());
      REQUIRE(receive_packets(ports, *ports.b, 1).size() == 1);
      while (ports.a->next_arrival() != never) ports.a->receive({}, ports.now());
      bell->drowse();
      RxFrame frame;
      REQUIRE(ports.b->receive({&frame, 1}, ports.now()) == 0);
      std::thread sender([&] {
        if (round % 2 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
        send_packet(ports, *ports.a, ports.b->facts().self, packet);
        while (ports.a->next_arrival() != never) ports.a->receive({}, ports.now());
      });
      const Time limit = read_clock() + std::chrono::seconds(60);
      Time now{};
      // The thread may wake spuriously. A thread that is not woken sleeps until the limit.
      while (ports.b->receive({&frame, 1}, now = read_clock()) == 0 && now < limit) {
        bell->rest(limit);
      }
      CHECK(now < limit);
      bell->awake();
      sender.join();
      ports.b->release({&frame, 1});
    }
  });
}

TEST_CASE("a lossless port has ways, and packets with reserved room arrive in order") {
  for_each_driver([](PortPair& ports) {
    Ways* const ways = ports.a->ways();
    CHECK((ways != nullptr) == ports.a->facts().lossless);
    if (ways == nullptr) return;
    const Endpoint there = ports.b->facts().self;
    const uint32_t way = ways->way_to(there);
    // The first packet makes the way, so nothing can be reserved before it.
    CHECK_FALSE(ways->reserve(way, 100));
    REQUIRE(send_packet(ports, *ports.a, there, packet_of(50, 0)));
    REQUIRE(receive_packets(ports, *ports.b, 1).size() == 1);
    CHECK_FALSE(ways->state(way).gone);
    CHECK(ways->state(way).empty);
    unsigned seed = 0;
    uint64_t taken = ways->state(way).taken;
    for (const size_t bytes : {size_t{64}, size_t{1000}, size_t{ports.a->facts().mtu} + 75}) {
      INFO("bytes " << bytes);
      // Sends as many packets as there is room for, in bursts as an engine does.
      std::vector<Packet> sent;
      bool full = false;
      while (!full) {
        const size_t before = sent.size();
        while (!full && sent.size() < before + 16) {
          full = !ways->reserve(way, static_cast<uint32_t>(bytes + 96));
          if (!full) sent.push_back(packet_of(bytes, ++seed));
        }
        for (size_t i = before; i < sent.size(); ++i) {
          REQUIRE(send_packet(ports, *ports.a, there, sent[i]));
        }
      }
      CHECK(sent.size() >= 2);
      CHECK(ports.a->counters().send_failures == 0);
      CHECK_FALSE(ways->state(way).empty);
      CHECK((receive_packets(ports, *ports.b, sent.size()) == sent));
      CHECK(ways->state(way).empty);
      CHECK(ways->state(way).taken > taken);
      taken = ways->state(way).taken;
      CHECK(ways->reserve(way, static_cast<uint32_t>(bytes)));
      REQUIRE(send_packet(ports, *ports.a, there, packet_of(bytes, 1)));
      REQUIRE(receive_packets(ports, *ports.b, 1).size() == 1);
    }
    ports.b.reset();
    CHECK(ways->state(way).gone);
  });
}

TEST_CASE(
    "packets that are written into a lossless port's own memory arrive in order with frames") {
  for_each_driver([](PortPair& ports) {
    Ways* const ways = ports.a->ways();
    if (ways == nullptr) return;
    const Endpoint there = ports.b->facts().self;
    const uint32_t way = ways->way_to(there);
    const auto write = [&](const Packet& packet) {
      std::byte* const memory = ways->begin(way, static_cast<uint32_t>(packet.size()));
      if (memory == nullptr) return false;
      std::copy(packet.begin(), packet.end(), memory);
      ways->end();
      return true;
    };
    CHECK_FALSE(write(packet_of(50, 0)));  // only a frame makes the way
    REQUIRE(send_packet(ports, *ports.a, there, packet_of(50, 0)));
    REQUIRE(receive_packets(ports, *ports.b, 1).size() == 1);
    unsigned seed = 0;
    for (const size_t bytes : {size_t{9}, size_t{29}, size_t{64}, size_t{5000}}) {
      INFO("bytes " << bytes);
      std::vector<Packet> sent;
      for (bool full = false; !full;) {
        sent.push_back(packet_of(bytes + seed % 7, seed));
        ++seed;
        full = !write(sent.back());
        if (full) sent.pop_back();
        if (full || seed % 5 != 0 || !ways->reserve(way, 200)) continue;
        // Packets whose room was reserved leave first.
        CHECK_FALSE(write(packet_of(9, 1)));
        sent.push_back(packet_of(100, seed));
        REQUIRE(send_packet(ports, *ports.a, there, sent.back()));
      }
      CHECK(sent.size() >= 2);
      CHECK((receive_packets(ports, *ports.b, sent.size()) == sent));
      CHECK(ways->state(way).empty);
    }
    CHECK(ports.a->counters().send_failures == 0);
  });
}

}  // namespace
}  // namespace urma::test
