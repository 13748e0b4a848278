#include "drivers/sim/star.h"

#include "drivers/sim/network.h"
#include "tests/catch.h"
#include "tests/drivers/ports.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;
using drivers::PacketPort;
using drivers::sim::Network;

// Many ports of one simulated network; the first one receives what the others send.
class Incast {
 public:
  static constexpr uint32_t bytes = 4000;

  Incast(uint32_t senders, const std::string& device) : pair_(device, device) {
    senders_.push_back(std::move(pair_.b));
    while (senders_.size() < senders) senders_.push_back(PortPair::open(device));
  }

  // Lets each sender send a packet each `gap`, for 10 ms, and counts what arrives meanwhile.
  void run(Duration gap) {
    const Time end = pair_.now() + 10ms;
    for (Time next = pair_.now(); next < end; next += gap) {
      while (pair_.now() < next) pair_.clock()->step(next);
      for (const auto& sender : senders_) {
        send_packet(pair_, *sender, pair_.a->facts().self, packet_of(bytes, 1), 1, Ecn::ect0);
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
  PortPair pair_;
  std::vector<std::unique_ptr<PacketPort>> senders_;
};

TEST_CASE("in a star, 32 senders to one receiver share its line") {
  // At 10 Gb/s a packet takes 3.2 us, so each sender alone fills a line for 10 ms.
  Incast star(32, "sim:star-incast?topology=star&rate=10Gbit&delay=1us&mark=64K&queue=128K");
  star.run(3200ns);
  const double bits_per_second = static_cast<double>(star.received) * 8 / 10e-3;
  CHECK(bits_per_second <= 10.02e9);
  CHECK(bits_per_second > 9.95e9);
  CHECK(star.marked > 0);
  REQUIRE(star.network().star() != nullptr);
  const fabric::LaneCounters line = star.network().star()->counters_to(star.self(), star.last);
  CHECK(line.most_queue <= 128 << 10);
  CHECK(line.most_queue > 120 << 10);
  CHECK(line.marked >= star.marked);

  // Without the switch each sender has a line of its own.
  Incast plain(32, "sim:star-plain?rate=10Gbit&delay=1us");
  CHECK(plain.network().star() == nullptr);
  plain.run(3200ns);
  CHECK(static_cast<double>(plain.received) * 8 / 10e-3 > 300e9);
}

TEST_CASE("in a star, a packet takes the time of two lines and two cables") {
  PortPair ports("sim:star-time?topology=star&rate=1Gbit&delay=5us", "sim:star-time?rate=2Gbit");
  const Time begin = ports.now();
  REQUIRE(send_packet(ports, *ports.a, ports.b->facts().self, packet_of(1000, 1)));
  std::array<RxFrame, 1> frame;
  while (ports.b->receive(frame, ports.now()) == 0) ports.clock()->step(begin + 1ms);
  // 8 us on the first line, 4 us on the second, and each cable has at least 1 us.
  CHECK(ports.now() - begin == 8us + 5us + 1us + 4us + 1us);
  ports.b->release(frame);
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
  CHECK_FALSE(drivers::open_port(drivers::parse_device_string("sim:x?topology=ring").value()));
}

}  // namespace
}  // namespace urma::test
