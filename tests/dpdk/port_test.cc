// SPDX-License-Identifier: Apache-2.0
// Peers that leave and return, and whole devices over ports of DPDK.

#include <algorithm>
#include <array>
#include <string>
#include <thread>
#include <urma/urma.hpp>

#include "tests/catch.h"
#include "tests/dpdk/dpdk_ports.h"
#include "tests/drivers/pcapng_reader.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;

TEST_CASE("either side of a vhost pair may close and return, and is reached again") {
  PortPair ports(vhost(), virtio_user());
  REQUIRE(reaches(ports));
  ports.b.reset();
  ports.b = PortPair::open(virtio_user());
  CHECK(reaches(ports));
  ports.a.reset();
  for (int i = 0; i < 20; ++i) {
    send_packet(ports, *ports.b, {ipv4(10, 9, 0, 1), ub_port}, packet_of(100, 1));
    ports.b->receive({}, read_clock());
  }
  ports.a = PortPair::open(vhost());
  CHECK(reaches(ports));
  std::swap(ports.a, ports.b);
  CHECK(reaches(ports));
  ports.a.reset();
  ports.b.reset();
  CHECK(lost_buffers() == 0);
}

TEST_CASE("either side of a memif pair in one process may close and return") {
  PortPair ports(memif_server(), memif_client());
  REQUIRE(reaches(ports));
  for (int i = 0; i < 5; ++i) {
    ports.b.reset();
    ports.a->receive({}, read_clock());
    ports.b = PortPair::open(memif_client());
    REQUIRE(reaches(ports));
    ports.a.reset();
    ports.b->receive({}, read_clock());
    ports.a = PortPair::open(memif_server());
    REQUIRE(reaches(ports));
  }
  ports.a.reset();
  ports.b.reset();
  CHECK(lost_buffers() == 0);
}

// Returns how many packets the port has counted as `name`, after 5 s at most.
uint64_t counted(drivers::PacketPort& port, const std::string& name) {
  const auto& metrics = port.facts().metrics;
  const auto found = std::ranges::find(metrics, name, &ObservedMetric::name);
  if (found == metrics.end()) return 0;
  const auto at = static_cast<size_t>(found - metrics.begin());
  std::array<uint64_t, drivers::PacketPort::most_metrics> values{};
  const Time until = read_clock() + 5s;
  while (values[at] == 0 && read_clock() < until) {
    port.metrics(values);
    std::this_thread::sleep_for(10ms);
  }
  return values[at];
}

// Returns how many of so many packets of different flows, sent from `a` one by one, arrive at `b`.
int count_arrivals(PortPair& ports, int packets) {
  int arrivals = 0;
  for (int i = 0; i < packets; ++i) {
    send_packet(ports, *ports.a, ports.b->facts().self, packet_of(300, static_cast<unsigned>(i)));
    RxFrame frame;
    size_t got = 0;
    const Time until = read_clock() + 5s;
    while (got == 0 && read_clock() < until) {
      ports.a->receive({}, read_clock());
      got = ports.b->receive({&frame, 1}, read_clock());
    }
    if (got == 1) ports.b->release({&frame, 1});
    arrivals += static_cast<int>(got);
  }
  return arrivals;
}

TEST_CASE("packets pass through each of several pairs of queues, in both directions") {
  const std::string two = "&queues=2&entropy=yes";
  const bool memif = GENERATE(true, false);
  {
    PortPair ports(memif ? memif_server(two) : vhost(two),
                   memif ? memif_client(two) : virtio_user(two));
    drivers::PacketPort& counts = *ports.b;  // vhost has no counters of queues
    for (int turn = 0; turn < 2; ++turn, std::swap(ports.a, ports.b)) {
      REQUIRE(reaches(ports));
      CHECK(count_arrivals(ports, 50) == 50);
      CHECK(ports.a->facts().arms != memif);
    }
    const std::string end = memif ? "_packets" : "_good_packets";
    for (const char* queue : {"rx_q0", "rx_q1", "tx_q0", "tx_q1"}) {
      INFO(counts.facts().description << ", " << queue);
      CHECK(counted(counts, "dpdk_" + (queue + end)) > 3);
    }
  }
  CHECK(lost_buffers() == 0);
}

// net_vhost reads its extended statistics from the state of its connection, which a thread of vhost
// frees without a lock when the peer ends. It also reads those of the first connection of the
// process if it has none of its own.
TEST_CASE("of a vhost port only the basic statistics are read, which go on without its peer") {
  PortPair ports(vhost(), virtio_user());
  REQUIRE(reaches(ports));
  const uint64_t sent = counted(*ports.a, "dpdk_tx_good_packets");
  CHECK(sent > 0);
  const auto second =
      PortPair::open("dpdk:net_vhost1,iface=" + socket_path() + "-2?ip=10.9.1.1/24");
  CHECK(second->facts().metrics.size() == 8);
  CHECK(ports.a->facts().metrics.size() == 8);
  CHECK(ports.b->facts().metrics.size() > 8);
  ports.b.reset();
  CHECK(counted(*ports.a, "dpdk_tx_good_packets") >= sent);
  ports.b = PortPair::open(virtio_user());
  CHECK(reaches(ports));
}

TEST_CASE("packets of two networks that share a link do not mix") {
  const auto tagged = PortPair::open(ring_end(0, "&vlan=5"));
  PortPair ports(ring_end(1), "dpdk:net_null0?ip=10.9.0.9/24");
  for (int i = 0; i < 10; ++i) {
    send_packet(ports, *ports.a, {ipv4(10, 9, 0, 1), ub_port}, packet_of(100, 1));
    RxFrame frame;
    CHECK(tagged->receive({&frame, 1}, read_clock()) == 0);
  }
  CHECK(tagged->counters().malformed == 0);
}

// A file with the packets of one end of a pair.
struct EndCapture {
  std::string path;

  explicit EndCapture(const std::string& end) : path(socket_path() + "-" + end + ".pcapng") {}
  ~EndCapture() { unlink(path.c_str()); }
  std::string device(const std::string& inner) const { return "pcap(file=" + path + "):" + inner; }
};

TEST_CASE("a capture has each packet that a port sent or received, whole and in order") {
  struct Link {
    std::string a, b;
    size_t header;  // of IP and UDP
  };
  const auto link = GENERATE(
      Link{ring_end(0, "&gather=always"), ring_end(1), 28},
      Link{vhost("&gather=always"), virtio_user(), 28},
      Link{"dpdk:net_ring0,pair=test?ip=fd00::1/64", "dpdk:net_ring1,pair=test?ip=fd00::2/64", 48});
  INFO(link.a);
  const EndCapture captures[] = {EndCapture("a"), EndCapture("b")};
  const auto forth = [](size_t i) { return i % 3 != 0; };
  std::vector<Packet> sent;
  {
    PortPair ports(captures[0].device(link.a), captures[1].device(link.b));
    for (unsigned i = 0; i < 60; ++i) {
      auto& from = forth(i) ? ports.a : ports.b;
      auto& to = forth(i) ? ports.b : ports.a;
      sent.push_back(packet_of(20 + i * 17, i));
      REQUIRE(send_packet(ports, *from, to->facts().self, sent[i], 1 + i % 3));
      REQUIRE(receive_packets(ports, *to, 1, 5s).size() == 1);
    }
  }
  // No frames of ARP and NDP, and packets that waited for them once.
  for (const bool first : {true, false}) {
    const Capture capture = read_capture(captures[first ? 0 : 1].path);
    CHECK(capture.ended);
    CHECK(capture.missing == 0);
    REQUIRE(capture.packets.size() == sent.size());
    for (size_t i = 0; i < sent.size(); ++i) {
      const Captured& one = capture.packets[i];
      using drivers::pcap::Direction;
      CHECK(one.direction == (forth(i) == first ? Direction::out : Direction::in));
      REQUIRE(one.bytes.size() == link.header + sent[i].size());
      CHECK(same(std::span(one.bytes).subspan(link.header), sent[i]));
    }
  }
  CHECK(lost_buffers() == 0);
}

TEST_CASE("packets to a neighbour that never answers are lost, counted, and settle") {
  PortPair ports(ring_end(0), ring_end(1));
  for (int i = 0; i < 100; ++i) {
    REQUIRE(send_packet(ports, *ports.a, {ipv4(10, 9, 0, 77), ub_port}, packet_of(100, 1)));
  }
  CHECK(ports.a->settled() == 100);
  const Time until = read_clock() + 3s;
  while (ports.a->counters().unreachable < 100 && read_clock() < until) ports.pass_time();
  CHECK(ports.a->counters().unreachable == 100);
  CHECK(reaches(ports));
}

TEST_CASE("packets to a neighbour that never answers do not keep those to others back") {
  PortPair ports(ring_end(0), ring_end(1));
  REQUIRE(reaches(ports));
  const Time now = read_clock();
  for (int i = 0; i < 300; ++i) {
    TxFrame* frame = nullptr;
    REQUIRE(ports.a->lend({&frame, 1}) == 1);
    std::fill_n(frame->head, 40, std::byte{7});
    frame->head_bytes = 40;
    frame->piece_count = frame->tail_bytes = 0;
    frame->to = {ipv4(10, 9, 0, 77), ub_port};
    REQUIRE(ports.a->send({&frame, 1}, now) == 1);
  }
  CHECK(ports.a->counters().unreachable == 300 - 256);
  CHECK(reaches(ports));
}

TEST_CASE("works over a port that drops everything end, and its device closes") {
  {
    Device silent = open(ring_end(1)).value();
    Segment memory = silent.allocate(4096).value();
    Device here = open("dpdk:net_null0?ip=10.9.0.1/24", {.operation_timeout = 300ms}).value();
    const auto remote = here.import(memory.descriptor()).value();
    auto jetty = here.jetty().value();
    const auto bytes = bytes_like(4096);
    for (int i = 0; i < 3; ++i) {
      REQUIRE(jetty.post(write(std::span(bytes), remote.segment, 0)) == 1);
      const auto done = jetty.wait(10s);
      REQUIRE(done.size() == 1);
      CHECK(done[0].status == Status::peer_unreachable);
    }
  }
  CHECK(lost_buffers() == 0);
}

TEST_CASE("devices with different MTUs agree on the smaller one") {
  {
    Device large = open(ring_end(0, "&mtu=9000&gather=always")).value();
    Device small = open(ring_end(1, "&mtu=1500&gather=always")).value();
    const auto bytes = bytes_like(1 << 20);
    for (const bool from_large : {true, false}) {
      Device& here = from_large ? large : small;
      Segment memory = (from_large ? small : large).allocate(bytes.size()).value();
      const auto remote = here.import(memory.descriptor()).value();
      auto jetty = here.jetty().value();
      std::vector<std::byte> back(bytes.size());
      for (const Work& work :
           {write(std::span(bytes), remote.segment, 0), read(std::span(back), remote.segment, 0)}) {
        REQUIRE(jetty.post(work) == 1);
        const auto done = jetty.wait(10s);
        REQUIRE(done.size() == 1);
        CHECK(done[0].ok());
      }
      CHECK(same(back, bytes));
    }
    for (Device* device : {&large, &small}) {
      CHECK(device->stats().value().dropped_malformed == 0);
    }
  }
  CHECK(lost_buffers() == 0);
}

TEST_CASE("devices write, read and close over rings, and no buffer is lost") {
  {
    Device here = open(ring_end(0, "&mtu=9000")).value();
    Device there = open(ring_end(1, "&mtu=9000")).value();
    auto memory = there.allocate(4 << 20).value();
    auto arrivals = there.jetty({.receives = 16}).value();
    there.publish("memory", memory, arrivals, everyone()).value();
    const auto remote = here.import("urma://10.9.0.2/memory", 10s).value();
    auto jetty = here.jetty().value();
    const auto bytes = bytes_like(3 << 20);
    REQUIRE(jetty.post(write(std::span(bytes), remote.segment, 4096)) == 1);
    const auto done = jetty.wait(10s);
    REQUIRE(done.size() == 1);
    CHECK(done[0].ok());
    CHECK(same(memory.bytes().subspan(4096, bytes.size()), bytes));
  }
  CHECK(lost_buffers() == 0);
}

}  // namespace
}  // namespace urma::test
