// SPDX-License-Identifier: Apache-2.0
#include "drivers/sim/switches.h"

#include "drivers/sim/network.h"
#include "tests/catch.h"
#include "tests/drivers/ports.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;
using drivers::PacketPort;
using drivers::VirtualClock;
using drivers::sim::Network;

// Many ports of one simulated network; the first one receives what the others send.
class Incast {
 public:
  static constexpr uint32_t bytes = 4000;

  Incast(uint32_t senders, const std::string& device) : Incast(senders, device, device) {}
  Incast(uint32_t senders, const std::string& receiver, const std::string& device)
      : pair_(receiver, device) {
    senders_.push_back(std::move(pair_.b));
    while (senders_.size() < senders) senders_.push_back(PortPair::open(device));
  }

  // Lets each sender send a packet each `gap`, for 10 ms, and counts what arrives meanwhile.
  void run(Duration gap) {
    const Time end = pair_.now() + 10ms;
    for (Time next = pair_.now(); next < end; next += gap) {
      while (pair_.now() < next) pair_.clock()->step(next);
      for (const auto& sender : senders_) {
        send_packet(pair_, *sender, pair_.a->facts().self, packet_, 1, Ecn::ect0);
      }
      receive();
    }
  }
  void receive() {
    std::array<RxFrame, 64> frames;
    while (const size_t count = pair_.a->receive(frames, pair_.now())) {
      for (const RxFrame& frame : std::span(frames).first(count)) {
        received += frame.bytes;
        marked += frame.ecn == Ecn::ce;
        last = pair_.now();
      }
      pair_.a->release(std::span(frames).first(count));
    }
  }
  Network& network() { return static_cast<Network&>(*pair_.clock()); }
  Endpoint self() const { return pair_.a->facts().self; }

  uint64_t received = 0;
  uint64_t marked = 0;
  Time last{};

 private:
  const Packet packet_ = packet_of(bytes, 1);
  PortPair pair_;
  std::vector<std::unique_ptr<PacketPort>> senders_;
};

TEST_CASE("in a star, 32 senders to one receiver share its line", "[rates]") {
  // At 10 Gb/s a packet takes 3.2 us, so each sender alone fills a line for 10 ms.
  Incast star(32, "sim:star-incast?topology=star&rate=10Gbit&delay=1us&mark=64K&queue=128K");
  star.run(3200ns);
  const double bits_per_second = static_cast<double>(star.received) * 8 / 10e-3;
  CHECK(bits_per_second <= 10.02e9);
  CHECK(bits_per_second > 9.95e9);
  CHECK(star.marked > 0);
  REQUIRE(star.network().switches() != nullptr);
  const fabric::LaneCounters line = star.network().counters_to(star.self());
  CHECK(line.most_queue <= 128 << 10);
  CHECK(line.most_queue > 120 << 10);
  CHECK(line.marked >= star.marked);

  // Without the switch each sender has a line of its own.
  Incast plain(32, "sim:star-plain?rate=10Gbit&delay=1us");
  CHECK(plain.network().switches() == nullptr);
  plain.run(3200ns);
  CHECK(static_cast<double>(plain.received) * 8 / 10e-3 > 300e9);
}

// Returns the time that a packet of 1000 bytes takes.
Duration time_of_packet(PortPair& ports, PacketPort& from, PacketPort& to) {
  VirtualClock& clock = *to.clock();
  const Time begin = clock.now();
  REQUIRE(send_packet(ports, from, to.facts().self, packet_of(1000, 1)));
  std::array<RxFrame, 1> frame;
  while (to.receive(frame, clock.now()) == 0) clock.step(begin + 1ms);
  to.release(frame);
  return clock.now() - begin;
}

TEST_CASE("in a star, a packet takes the time of two lines and two cables") {
  PortPair ports("sim:star-time?topology=star&rate=1Gbit&delay=5us", "sim:star-time?rate=2Gbit");
  // 8 us on the first line, 4 us on the second, whose cable has the least delay.
  CHECK(time_of_packet(ports, *ports.a, *ports.b) == 8us + 5us + 4us + 1us);
}

TEST_CASE("in a parking lot, a packet takes the time of each cable on its way") {
  const std::string device =
      "sim:parking-time?topology=parking&hops=2&rate=1Gbit&delay=1us&trunk_rate=8Gbit&trunk_delay="
      "3us";
  PortPair ends(device, device);
  const auto first = PortPair::open(device), second = PortPair::open(device);
  // Two lines of hosts, and two between switches.
  CHECK(time_of_packet(ends, *ends.a, *ends.b) == 2 * (8us + 1us) + 2 * (1us + 3us));
  // The pair beside the first hop.
  CHECK(time_of_packet(ends, *first, *second) == 2 * (8us + 1us) + 1us + 3us);
}

TEST_CASE("in two tiers, each device reaches each, over one switch or three") {
  const std::string device =
      "sim:tiers?topology=leaf_spine&leaves=3&leaf_hosts=2&spines=2&rate=1Gbit&delay=1us&lanes=2";
  PortPair first(device, device);
  std::vector<std::unique_ptr<PacketPort>> others;
  std::vector<PacketPort*> ports{first.a.get(), first.b.get()};
  while (ports.size() < 6) ports.push_back(others.emplace_back(PortPair::open(device)).get());
  for (size_t from = 0; from < ports.size(); ++from) {
    for (size_t to = 0; to < ports.size(); ++to) {
      if (from == to) continue;
      INFO(from << " to " << to);
      const int cables = from / 2 == to / 2 ? 2 : 4;
      CHECK(time_of_packet(first, *ports[from], *ports[to]) == cables * (8us + 1us));
    }
  }
  const auto seventh = drivers::open_port(drivers::parse_device_string(device).value());
  REQUIRE_FALSE(seventh);
  CHECK(seventh.error().message.find("has 6 hosts") != std::string::npos);
}

TEST_CASE("the packets of a device use the lane of its sl=, and overtake those of lower lanes") {
  const std::string low = "sim:lanes?topology=star&lanes=2&rate=1Gbit&delay=1us";
  PortPair ends(low, low);
  const auto high = PortPair::open("sim:lanes?rate=1Gbit&delay=1us&sl=1");
  CHECK(high->facts().carries.vl);
  const Endpoint to = ends.b->facts().self;
  // Sent at the same time: lane 0 has 10 packets, of which one is on the line to `b` when the
  // packet of lane 1 comes.
  for (uint8_t i = 0; i < 10; ++i) REQUIRE(send_packet(ends, *ends.a, to, packet_of(1000, i)));
  REQUIRE(send_packet(ends, *high, to, packet_of(1000, 99)));
  CHECK(receive_packets(ends, *ends.b, 11).size() == 11);
  auto& network = static_cast<Network&>(*ends.clock());
  const auto port = network.switches()->port_to(network.host_of(to));
  port.at.settle(port.number, network.now());
  CHECK(port.at.counters(port.number, 0).packets == 10);
  CHECK(port.at.counters(port.number, 1).packets == 1);

  for (const std::string device : {"sim:lanes?sl=2", "sim:lanes?sl=16", "sim:no-lanes?sl=1"}) {
    INFO(device);
    const auto refused = drivers::open_port(drivers::parse_device_string(device).value());
    REQUIRE_FALSE(refused);
    CHECK(refused.error().message.find("Fix: ") != std::string::npos);
  }
}

TEST_CASE("what switches drop makes room for other packets") {
  Incast star(8, "sim:star-drops?topology=star&rate=100Mbit&queue=16K", "sim:star-drops");
  // 80 000 packets, of which the line forwards 31. The network holds fewer at a time.
  star.run(1us);
  CHECK(star.received > 30 * Incast::bytes);
  CHECK(star.received < 33 * Incast::bytes);
  CHECK(star.network().counters().overflowed == 0);
}

TEST_CASE("a device that is opened again at its address is the same host") {
  const std::string device = "sim:parking-again?topology=parking&hops=1&pairs=1&address=fd00::";
  PortPair ends(device + "11", device + "12");
  auto third = PortPair::open(device + "13");
  const auto fourth = PortPair::open(device + "14");
  third.reset();
  third = PortPair::open(device + "13");
  CHECK(time_of_packet(ends, *third, *fourth) == 3us);
  auto& network = static_cast<Network&>(*ends.clock());
  CHECK(network.host_of(third->facts().self) == 2);
}

TEST_CASE("a star needs no option of later devices, and cannot be had once there are devices") {
  PortPair ports("sim:star-first?topology=star", "sim:star-first");
  REQUIRE(send_packet(ports, *ports.b, ports.a->facts().self, packet_of(100, 1)));
  CHECK(receive_packets(ports, *ports.a, 1).size() == 1);

  const auto plain = PortPair::open("sim:star-late");
  const auto refused =
      drivers::open_port(drivers::parse_device_string("sim:star-late?topology=star").value());
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message.find("topology=star") != std::string::npos);
  for (const std::string options : {"topology=ring", "topology=parking&hops=0",
                                    "topology=star&lanes=17", "topology=star&rate=1Gbit&meter=aimd",
                                    "topology=star&meter=caqm_r", "topology=leaf_spine&rtt=0s"}) {
    INFO(options);
    CHECK_FALSE(drivers::open_port(drivers::parse_device_string("sim:x?" + options).value()));
  }
  const auto larger =
      drivers::open_port(drivers::parse_device_string("sim:star-first?mtu=8192").value());
  REQUIRE_FALSE(larger);
  CHECK(larger.error().message.find("the mtu of the first") != std::string::npos);
}

}  // namespace
}  // namespace urma::test
