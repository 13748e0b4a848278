// SPDX-License-Identifier: Apache-2.0
// Data that is sent from the application's memory: when frames settle, and that the port does not
// read the memory afterwards. A pair of rings stands for a port that reads packets late: the other
// end reads them, when it looks.

#include <urma/urma.hpp>

#include "tests/catch.h"
#include "tests/dpdk/dpdk_ports.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;

// Two ends of a pair of rings that know each other's MAC address.
struct LatePair : PortPair {
  explicit LatePair(const std::string& options = "&gather=always")
      : PortPair(ring_end(0, options), ring_end(1, options)) {
    REQUIRE(reaches(*this));
    look(*a);
    REQUIRE(a->settled() == sent());
  }
  // One end looks, the other one does not.
  static void look(drivers::PacketPort& port, Duration later = {}) {
    port.receive({}, read_clock() + later);
  }
  uint64_t sent() const { return a->counters().frames_sent; }
  std::vector<Packet> send(unsigned count, size_t bytes, unsigned most_pieces = 3) {
    std::vector<Packet> packets;
    for (unsigned i = 0; i < count; ++i) {
      packets.push_back(packet_of(bytes - i % 64, i));
      REQUIRE(send_packet(*this, *a, b->facts().self, packets.back(), 1 + i % most_pieces));
    }
    return packets;
  }
  // Looks at both ends until all frames have settled.
  void settle() {
    const Time until = read_clock() + 5s;
    while (a->settled() < sent() && read_clock() < until) pass_time();
    CHECK(a->settled() == sent());
  }
};

std::string transmit_of(const drivers::PacketPort& port, bool source = false) {
  for (const Setting& one : port.facts().settings) {
    if (one.name == "transmit") return source ? one.source : one.value;
  }
  return "";
}

TEST_CASE("a frame settles when the port has read it, and not before") {
  LatePair ports;
  const uint64_t before = ports.a->settled();
  const auto sent = ports.send(20, 900);
  for (int i = 0; i < 10; ++i) LatePair::look(*ports.a);
  CHECK(ports.a->settled() == before);
  CHECK(receive_packets(ports, *ports.b, 5).size() == 5);
  LatePair::look(*ports.a);
  CHECK(ports.a->settled() == before + 5);
  const auto rest = receive_packets(ports, *ports.b, 15);
  CHECK(std::equal(rest.begin(), rest.end(), sent.begin() + 5, sent.end()));
  LatePair::look(*ports.a);
  CHECK(ports.a->settled() == before + 20);
}

TEST_CASE("hundreds of frames are in flight, and no memory is read after its frame has settled") {
  LatePair ports("&gather=always&mtu=9000");
  for (unsigned round = 0; round < 20; ++round) {
    const auto sent = ports.send(400, 8000 - 137 * round);
    CHECK(ports.a->settled() < ports.sent());
    // `send_packet` overwrites the memory of frames that have settled.
    const auto arrived = receive_packets(ports, *ports.b, sent.size());
    CHECK((arrived == sent));
  }
  ports.settle();
}

TEST_CASE("with more frames in flight than a port remembers, packets are copied") {
  LatePair ports;
  const uint64_t before = ports.a->settled();
  const auto sent = ports.send(1500, 300, 1);
  CHECK(ports.a->settled() == before);
  CHECK((receive_packets(ports, *ports.b, sent.size()) == sent));
  ports.settle();
}

TEST_CASE("a port that reads nothing for a second gives the memory back") {
  LatePair ports;
  const uint64_t before = ports.a->settled();
  ports.send(50, 700);
  LatePair::look(*ports.a, 400ms);
  CHECK(ports.a->settled() == before);
  LatePair::look(*ports.a, 2s);
  CHECK(ports.a->settled() == ports.sent());
  ports.memory.reclaim(*ports.a);
  CHECK(receive_packets(ports, *ports.b, 50).empty());
  CHECK(reaches(ports));
}

TEST_CASE("packets that the port does not take keep their place, and are sent later") {
  LatePair ports;
  constexpr unsigned slots = 2047;  // of a ring
  std::vector<TxFrame*> frames(64);
  const auto bytes = bytes_like(500);
  uint64_t taken = 0;
  // The last calls find the ring full. On a busy machine they could otherwise take 10 ms, after
  // which frames are dropped.
  const Time now = read_clock();
  for (unsigned i = 0; i < 2 * slots / 64; ++i) {
    const size_t lent = ports.a->lend(frames);
    for (TxFrame* frame : std::span(frames).first(lent)) {
      frame->head_bytes = 40;
      frame->piece_count = 1;
      frame->pieces[0] = {bytes.data(), static_cast<uint32_t>(bytes.size())};
      frame->tail_bytes = 0;
      frame->to = ports.b->facts().self;
    }
    const size_t count = ports.a->send(std::span(frames).first(lent), now);
    ports.a->unlend(std::span(frames).first(lent).subspan(count));
    taken += count;
  }
  CHECK(taken == slots);
  CHECK(receive_packets(ports, *ports.b, taken).size() == taken);
  ports.settle();
  CHECK(reaches(ports));
}

TEST_CASE("a port that is closed reads nothing any longer, and has lost no buffer") {
  {
    LatePair ports("&gather=always&mtu=9000");
    const auto sent = ports.send(200, 8000);
    ports.a.reset();
    ports.memory.reclaim_all();
    std::array<RxFrame, 64> frames;
    CHECK(ports.b->receive(frames, read_clock()) == 0);
  }
  {
    PortPair ports(vhost("&gather=always&mtu=9000"), virtio_user("&gather=always&mtu=9000"));
    REQUIRE(reaches(ports));
    for (unsigned i = 0; i < 100; ++i) {
      send_packet(ports, *ports.a, ports.b->facts().self, packet_of(8000, i));
    }
  }
  CHECK(lost_buffers() == 0);
}

TEST_CASE("a port that reads while it sends settles at once") {
  PortPair ports(vhost("&gather=always&mtu=9000"), virtio_user("&gather=always&mtu=9000"));
  REQUIRE(reaches(ports));
  CHECK(transmit_of(*ports.a) == "gathered from 1 on");
  std::vector<Packet> sent;
  for (unsigned i = 0; i < 200; ++i) {
    sent.push_back(packet_of(100 + 39 * i, i));
    REQUIRE(send_packet(ports, *ports.a, ports.b->facts().self, sent.back(), 1 + i % 3));
    CHECK(ports.a->settled() == ports.a->counters().frames_sent);
  }
  CHECK((receive_packets(ports, *ports.b, sent.size()) == sent));
}

TEST_CASE("a port says whether it copies, and why") {
  const auto transmits = [](const std::string& device, bool source) {
    const auto port = try_open_port(device);
    REQUIRE(port.ok());
    return transmit_of(**port, source);
  };
  const std::string measured = transmits(vhost("&mtu=9000"), true);
  CHECK(measured.starts_with("a chain costs "));
  CHECK(measured.find(" ns, a copy of 8K ") != std::string::npos);
  const std::string value = transmits(vhost("&mtu=9000"), false);
  CHECK((value == "copied" || value.starts_with("gathered from ")));
  CHECK(transmits(vhost("&gather=never"), true) == "gather=never");
  CHECK(transmits(ring_end(0), false) == "copied");
  CHECK(transmits(ring_end(0), true) == "the other end decides when packets are read");
  CHECK(transmits("dpdk:net_null0?ip=10.9.0.1/24&gather=always", false) == "copied");
  const std::string six = "dpdk:net_ring0,pair=six?ip=fd00::1/64&gather=always";
  CHECK(transmits(six, false) == "gathered from 1 on");
  check_refused(ring_end(0, "&gather=maybe"), Status::invalid_argument,
                "auto, always, registered or never");
}

TEST_CASE("only granted memory is sent from where it is, if the port is asked for that") {
  LatePair ports("&gather=registered");
  const auto granted = bytes_like(1000);
  const auto other = bytes_like(1000);
  drivers::DeviceReads& reads = *ports.a->device_reads();
  const auto send = [&](const std::vector<std::byte>& bytes) {
    TxFrame* frame = nullptr;
    REQUIRE(ports.a->lend({&frame, 1}) == 1);
    frame->head_bytes = frame->tail_bytes = 0;
    frame->piece_count = 1;
    frame->pieces[0] = {bytes.data(), static_cast<uint32_t>(bytes.size())};
    frame->to = ports.b->facts().self;
    REQUIRE(ports.a->send({&frame, 1}, read_clock()) == 1);
    return ports.sent() - ports.a->settled();
  };
  CHECK(send(granted) == 0);
  REQUIRE(reads.map(granted, Rights::read));
  CHECK(send(granted) == 0);
  reads.grant(granted, Rights::read);
  CHECK(send(other) == 0);
  CHECK(send(granted) == 1);
  CHECK(send(other) == 2);
  reads.revoke(granted, Rights::read);
  CHECK(receive_packets(ports, *ports.b, 5).size() == 5);
  LatePair::look(*ports.a);
  CHECK(send(granted) == 0);
  reads.unmap(granted, Rights::read);
  CHECK((receive_packets(ports, *ports.b, 1) == std::vector<Packet>{granted}));
  CHECK(ports.b->device_reads() != nullptr);
  CHECK(PortPair::open("dpdk:net_null0?ip=10.9.0.9/24")->device_reads() == nullptr);
}

// A device that writes, and one that runs only as long as `run_both` does.
struct HeldWrites {
  static constexpr size_t bytes = 256 << 10;

  explicit HeldWrites(const std::string& options)
      : here(open(ring_end(0, options), {.threads = Threads::inlined}).value()),
        there(open(ring_end(1, options), {.threads = Threads::inlined}).value()) {}

  bool post() { return jetty.post(write(source.bytes(), remote.segment, 0)) == 1; }
  static size_t run(Jetty& one) {
    Completion done;
    return one.poll({&done, 1});
  }
  // Returns whether a work has completed.
  bool run_both(unsigned passes) {
    for (unsigned i = 0; i < passes; ++i) {
      run(arrivals);
      if (run(jetty) == 1) return true;
    }
    return false;
  }
  // Posts a work whose packets the port cannot get rid of, because the other end does not run.
  void post_held() {
    REQUIRE(post());
    for (int i = 0; i < 100; ++i) CHECK(run(jetty) == 0);
  }

  Device here;
  Device there;
  Segment target = there.allocate(bytes, {.rights = Rights::write}).value();
  Jetty arrivals = there.jetty().value();
  Imported remote = here.import(target.descriptor()).value();
  std::vector<std::byte> memory = bytes_like(bytes);
  Segment source = here.register_memory(memory).value();
  Jetty jetty = here.jetty().value();
};

TEST_CASE("unregister and revoke take memory back from a port that does not read it") {
  for (const bool revoked : {false, true}) {
    for (const char* gather : {"always", "registered"}) {
      HeldWrites it("&mtu=9000&gather=" + std::string(gather));
      REQUIRE(it.post());
      REQUIRE(it.run_both(1'000'000));
      CHECK(same(it.target.bytes(), it.memory));
      const Time begun = read_clock();
      it.post_held();
      CHECK((revoked ? it.source.revoke() : it.source.unregister()).ok());
      CHECK(read_clock() - begun >= 1s);  // the frames named the memory
      constexpr auto freed = std::byte{0xdb};
      std::ranges::fill(it.memory, freed);
      it.run_both(10'000);
      CHECK(same(it.target.bytes(), bytes_like(HeldWrites::bytes)));
    }
  }
  CHECK(lost_buffers() == 0);
}

}  // namespace
}  // namespace urma::test
