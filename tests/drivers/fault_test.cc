// SPDX-License-Identifier: Apache-2.0
#include "tests/catch.h"
#include "tests/drivers/ports.h"

namespace urma::test {
namespace {

// The number of packets that arrive, and how many of these are damaged.
struct Toll {
  size_t arrived = 0;
  size_t damaged = 0;
};

Toll toll_of(const std::string& from, const std::string& to, unsigned count) {
  PortPair ports(from, to);
  const Packet packet = packet_of(100, 5);
  Toll toll;
  for (unsigned sent = 0; sent < count;) {
    for (unsigned i = 0; i < 50 && sent < count; ++i, ++sent) {
      send_packet(ports, *ports.a, ports.b->facts().self, packet);
    }
    for (int i = 0; i < 20; ++i) ports.pass_time();
    std::array<RxFrame, 64> frames;
    while (const size_t got = ports.b->receive(frames, ports.now())) {
      for (const RxFrame& frame : std::span(frames).first(got)) {
        ++toll.arrived;
        toll.damaged += !std::equal(packet.begin(), packet.end(), frame.data);
      }
      ports.b->release(std::span(frames).first(got));
    }
  }
  return toll;
}

TEST_CASE("faults happen as often as the options say, and in their direction") {
  constexpr unsigned count = 4000;
  const auto about = [](size_t value, double expected) {
    return std::abs(static_cast<double>(value) - expected) < 0.25 * expected + 20;
  };
  CHECK(toll_of("fault(seed=1):sim:f1", "sim:f1", count).arrived == count);
  CHECK(about(count - toll_of("fault(loss=10%):sim:f2", "sim:f2", count).arrived, 0.1 * count));
  CHECK(about(count - toll_of("sim:f3", "fault(in.loss=10%):sim:f3", count).arrived, 0.1 * count));
  CHECK(about(toll_of("fault(dup=10%):sim:f4", "sim:f4", count).arrived - count, 0.1 * count));
  CHECK(about(toll_of("sim:f5", "fault(in.dup=10%):sim:f5", count).arrived - count, 0.1 * count));
  CHECK(about(toll_of("fault(corrupt=10%):sim:f6", "sim:f6", count).damaged, 0.1 * count));
  CHECK(about(toll_of("sim:f7", "fault(in.corrupt=10%):sim:f7", count).damaged, 0.1 * count));
}

TEST_CASE("the same seed gives the same faults") {
  const Toll first = toll_of("fault(loss=30%,corrupt=10%,seed=9):sim:f8", "sim:f8", 500);
  const Toll again = toll_of("fault(loss=30%,corrupt=10%,seed=9):sim:f9", "sim:f9", 500);
  const Toll other = toll_of("fault(loss=30%,corrupt=10%,seed=10):sim:f10", "sim:f10", 500);
  CHECK(first.arrived == again.arrived);
  CHECK(first.damaged == again.damaged);
  CHECK((first.arrived != other.arrived || first.damaged != other.damaged));
}

// Each frame is read once and settled once, each at its time. This holds for a simulated device and
// for a device behind the wrapper.
TEST_CASE("a late port reads memory and settles after the given delays, in order") {
  using namespace std::chrono_literals;
  for (const std::string from :
       {"fault(hold=100us,settle=50us):sim:late-fault", "sim:late-fault?hold=100us&settle=50us"}) {
    INFO(from);
    PortPair ports(from, "sim:late-fault");
    const auto run_until = [&](Time until) {
      while (ports.now() < until) {
        ports.clock()->step(until);
        ports.a->receive({}, ports.now());
      }
    };
    Packet memory = packet_of(50, 1);
    const Packet meant = packet_of(50, 2);
    TxFrame* frame = nullptr;
    REQUIRE(ports.a->lend({&frame, 1}) == 1);
    frame->head_bytes = frame->tail_bytes = 0;
    frame->piece_count = 1;
    frame->pieces[0] = {memory.data(), static_cast<uint32_t>(memory.size())};
    frame->to = ports.b->facts().self;
    const Time sent = ports.now();
    REQUIRE(ports.a->send({&frame, 1}, sent) == 1);
    run_until(sent + 99us);
    RxFrame arrived;
    CHECK(ports.b->receive({&arrived, 1}, ports.now()) == 0);
    memory = meant;
    run_until(sent + 101us);
    std::ranges::fill(memory, std::byte{});
    CHECK(ports.a->settled() == 0);
    run_until(sent + 149us);
    CHECK(ports.a->settled() == 0);
    run_until(sent + 151us);
    CHECK(ports.a->settled() == 1);
    REQUIRE(ports.b->receive({&arrived, 1}, ports.now()) == 1);
    CHECK(std::equal(meant.begin(), meant.end(), arrived.data));
    ports.b->release({&arrived, 1});
  }
}

TEST_CASE("a late port takes no more frames than its ring has, until some have settled") {
  for (const std::string from :
       {"fault(hold=100us,ring=3):sim:ring", "sim:ring?hold=100us&ring=3"}) {
    INFO(from);
    PortPair ports(from, "sim:ring");
    std::array<TxFrame*, 5> frames;
    REQUIRE(ports.a->lend(frames) == frames.size());
    const Packet packet = packet_of(50, 1);
    for (TxFrame* frame : frames) {
      frame->head_bytes = frame->tail_bytes = 0;
      frame->piece_count = 1;
      frame->pieces[0] = {packet.data(), static_cast<uint32_t>(packet.size())};
      frame->to = ports.b->facts().self;
    }
    REQUIRE(ports.a->send(frames, ports.now()) == 3);
    CHECK(ports.a->send(std::span(frames).subspan(3), ports.now()) == 0);
    while (ports.a->settled() < 3) ports.pass_time();
    CHECK(ports.a->send(std::span(frames).subspan(3), ports.now()) == 2);
    CHECK(receive_packets(ports, *ports.b, 5).size() == 5);
  }
}

// The line carries one byte in a microsecond, so nothing leaves it while the packets are sent.
TEST_CASE(
    "a queue longer than mark= marks the packets that ECN allows to be marked, and no others") {
  struct Case {
    const char* from;
    const char* to;
  };
  const Case cases[] = {
      {"fault(rate=8Mbit,mark=1050):sim:mark", "sim:mark"},
      {"sim:mark?rate=8Mbit&mark=1050", "sim:mark"},
      {"sim:mark", "fault(in.rate=8Mbit,in.mark=1050):sim:mark"},
      {"pcap(file=/dev/null):fault(rate=8Mbit,mark=1050):sim:mark", "sim:mark"},
      {"fault(rate=8Mbit,mark=1050):udp:?ecn=yes", "udp:?ecn=yes"},
      {"fault(rate=8Mbit,mark=1050):udp:[::1]:5021?ecn=yes", "udp:[::1]:5022?ecn=yes"},
  };
  for (const Case& one : cases) {
    INFO(one.from << " to " << one.to);
    PortPair ports(one.from, one.to);
    std::vector<Ecn> fields;
    for (unsigned i = 0; i < 40; ++i) fields.push_back(static_cast<Ecn>(i % 4));
    auto expected = send_ecn(ports, fields, 100);
    uint64_t marks = 0;
    for (size_t before = 0; before < expected.size(); ++before) {
      Ecn& ecn = expected[before].ecn;
      if (before * 100 <= 1050 || ecn == Ecn::not_ect || ecn == Ecn::ce) continue;
      ecn = Ecn::ce;
      ++marks;
    }
    CHECK((receive_ecn(ports, expected.size()) == expected));
    if (std::string_view(one.from).starts_with("fault")) {
      CHECK(ports.a->counters().injected == marks);
    }
  }
}

// Each wrapper has buffers of its own. These, and no others, must be returned to it.
TEST_CASE("two wrappers each get their own buffers back, however many packets come") {
  for (const std::string in : {"", "in.delay=3us"}) {
    PortPair ports("sim:nested", "fault(" + in + "):fault(in.delay=2us):sim:nested");
    for (unsigned i = 0; i < 10'000; ++i) {
      const Packet packet = packet_of(100, i);
      REQUIRE(send_packet(ports, *ports.a, ports.b->facts().self, packet));
      const auto arrived = receive_packets(ports, *ports.b, 1);
      REQUIRE(arrived.size() == 1);
      REQUIRE(arrived[0] == packet);
    }
  }
}

TEST_CASE("a delayed packet arrives when its delay has passed") {
  PortPair ports("fault(delay=100us):sim:f11", "sim:f11");
  const Time sent = ports.now();
  send_packet(ports, *ports.a, ports.b->facts().self, packet_of(50, 1));
  CHECK(ports.a->next_arrival() == sent + std::chrono::microseconds(100));
  RxFrame frame;
  Time arrived{};
  while (arrived == Time{}) {
    ports.pass_time();
    ports.a->receive({&frame, 1}, ports.now());  // which releases the packets that are due
    if (ports.b->receive({&frame, 1}, ports.now()) == 1) arrived = ports.now();
  }
  ports.b->release({&frame, 1});
  CHECK(arrived - sent >= std::chrono::microseconds(100));
  CHECK(arrived - sent <= std::chrono::microseconds(115));
  CHECK(ports.a->next_arrival() == never);
}

}  // namespace
}  // namespace urma::test
