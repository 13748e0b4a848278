// SPDX-License-Identifier: Apache-2.0
// Promises of link(SWITCH):DEVICE beyond those of every port.

#include <unistd.h>

#include <atomic>
#include <thread>

#include "base/clock.h"
#include "base/socket_address.h"
#include "tests/catch.h"
#include "tests/drivers/running_switch.h"
#include "wire/cci.h"

namespace urma::test {
namespace {

Result<std::unique_ptr<drivers::PacketPort>> try_to_open(const std::string& text) {
  return drivers::open_port(drivers::parse_device_string(text).value());
}

// Returns the frame that arrives at `b` within 500 ms, without its bytes.
RxFrame receive_one(PortPair& ports) {
  RxFrame frame{};
  const Time until = ports.now() + std::chrono::milliseconds(500);
  while (ports.now() < until) {
    if (ports.b->receive({&frame, 1}, ports.now()) == 0) continue;
    ports.b->release({&frame, 1});
    return frame;
  }
  return {};
}

TxFrame* link_frame(PortPair& ports, size_t head_bytes) {
  TxFrame* frame = nullptr;
  REQUIRE(ports.a->lend({&frame, 1}) == 1);
  std::fill_n(frame->head, head_bytes, std::byte{7});
  frame->head_bytes = static_cast<uint8_t>(head_bytes);
  frame->piece_count = frame->tail_bytes = frame->path = 0;
  frame->ecn = Ecn::not_ect;
  frame->cci = 0;
  frame->to = ports.b->facts().self;
  return frame;
}

TEST_CASE("the address of a device behind a switch is its CNA, and it carries CCI and LBF") {
  RunningSwitch running;
  PortPair ports(running.device("cna=7"), running.device());
  const drivers::PortFacts& facts = ports.a->facts();
  CHECK(to_string(facts.self) == "[fd55:4200::7]:4792");
  CHECK(facts.eid == facts.self.address);
  CHECK(facts.carries.cci);
  CHECK(facts.carries.lbf);
  CHECK(facts.carries.vl);
  CHECK(facts.carries.ecn);
  CHECK(is_switched(ports.b->facts().self.address));
  CHECK_FALSE(ports.b->facts().self == facts.self);
}

TEST_CASE("the CCI of a packet reaches the receiver as the switch has edited it") {
  RunningSwitch running;
  PortPair ports(running.device(), running.device());
  TxFrame* frame = link_frame(ports, 60);
  frame->cci = cci_of(CaqmCci{.enabled = true, .increase = true, .hint = 9});
  REQUIRE(ports.a->send({&frame, 1}, ports.now()) == 1);
  const auto asked = parse_cci<CaqmCci>(receive_one(ports).cci);
  REQUIRE(asked);
  CHECK(asked->enabled);
  CHECK(asked->switched);
  frame = link_frame(ports, 60);
  REQUIRE(ports.a->send({&frame, 1}, ports.now()) == 1);
  const RxFrame silent = receive_one(ports);
  CHECK(silent.bytes == 60);
  CHECK(silent.cci == 0);
}

// Sends packets that ask for an increase until one arrives for which `as_expected` returns true of
// its signal, for 10 s. Returns whether one did.
bool arrives(PortPair& ports, bool (*as_expected)(const std::optional<congestion::Signal>&)) {
  std::array<RxFrame, 4> messages;  // of the switch
  const Time until = ports.now() + std::chrono::seconds(10);
  while (ports.now() < until) {
    TxFrame* frame = link_frame(ports, 60);
    frame->cci = cci_of(CaqmCci{.enabled = true, .increase = true, .hint = 9});
    REQUIRE(ports.a->send({&frame, 1}, ports.now()) == 1);
    REQUIRE(ports.a->receive(messages, ports.now()) == 0);
    const RxFrame arrived = receive_one(ports);
    if (arrived.bytes == 60 && as_expected(signal_of(arrived.cci, 0))) return true;
  }
  return false;
}

// A few packets may leave before a device that attaches again has the answer.
TEST_CASE("a port states the meters of its switch, and asks no other ones after a restart") {
  auto running = std::make_unique<RunningSwitch>();
  PortPair ports(running->device("cna=7"), running->device("cna=8"));
  CHECK(ports.a->facts().metering == congestion::Metering::rates);
  const std::string at = "udp:" + to_string(running->at()) + "?ecn=yes";
  const auto restart_with = [&](std::string_view meter) {
    running.reset();
    running = std::make_unique<RunningSwitch>(at, meter);
  };
  const auto asks_nothing = [](const auto& signal) { return !signal; };
  const auto is_answered = [](const auto& signal) { return signal && signal->switched; };
  restart_with("caqm_w");
  CHECK(arrives(ports, asks_nothing));
  CHECK(ports.a->facts().metering == congestion::Metering::rates);
  restart_with("caqm_r");
  CHECK(arrives(ports, is_answered));
  restart_with("none");
  CHECK(arrives(ports, asks_nothing));
}

// A switch without a queue: lets a device attach, and keeps its packets.
class Keeper {
 public:
  Keeper() {
    SocketAddress address;
    socklen_t length = to_sockaddr({ipv4(127, 0, 0, 1), 0}, address);
    REQUIRE(bind(socket_, &address.any, length) == 0);
    REQUIRE(getsockname(socket_, &address.any, &length) == 0);
    at_ = from_sockaddr(address.any);
    thread_ = std::thread([this] { serve(); });
  }
  ~Keeper() {
    shutdown(socket_, SHUT_RDWR);
    thread_.join();
    close(socket_);
  }
  std::string device(const std::string& options) const {
    return "link(" + to_string(at_) + options + "):udp:127.0.0.1:0";
  }
  // Returns the packet that arrives next.
  LinkPacket packet() {
    while (!kept_.load()) std::this_thread::yield();
    kept_ = false;
    return packet_;
  }

 private:
  void serve() {
    std::array<std::byte, 9216> bytes;
    SocketAddress from;
    socklen_t length = 0;
    for (ssize_t got; (got = recvfrom(socket_, bytes.data(), bytes.size(), 0, &from.any,
                                      &(length = sizeof from))) > 0;) {
      const auto datagram = std::span(bytes).first(static_cast<size_t>(got));
      const auto asked = parse_link_control(datagram);
      if (asked && asked->type == LinkMessage::attach) {
        const auto answer = control_datagram({.type = LinkMessage::attached,
                                              .cna = 7,
                                              .mtu_log2 = 12,
                                              .lease_ms = 5000,
                                              .nonce = asked->nonce});
        sendto(socket_, answer.data(), answer.size(), 0, &from.any, length);
      } else if (const auto packet = parse_link_packet(datagram)) {
        packet_ = *packet;
        kept_ = true;
      }
    }
  }

  const int socket_ = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  Endpoint at_;
  LinkPacket packet_{};
  std::atomic<bool> kept_{false};
  std::thread thread_;
};

TEST_CASE("balance=packet lets switches spread the packets of a channel, which then overtake") {
  for (const bool spread : {false, true}) {
    Keeper keeper;
    const auto port = PortPair::open(keeper.device(spread ? ",balance=packet" : ""));
    CHECK(port->facts().reorders == spread);
    TxFrame* frame = nullptr;
    const auto send = [&](uint8_t channel) {
      REQUIRE(port->lend({&frame, 1}) == 1);
      std::fill_n(frame->head, 60, std::byte{channel});
      frame->head_bytes = 60;
      frame->piece_count = frame->tail_bytes = frame->path = 0;
      frame->ecn = Ecn::not_ect;
      frame->cci = 0;
      frame->to = {cna_address(9), ub_port};
      REQUIRE(port->send({&frame, 1}, read_clock()) == 1);
      return keeper.packet();
    };
    const LinkPacket first = send(1);
    CHECK(first.word.per_packet == spread);
    CHECK_FALSE(first.word.shortest);
    // The load-balance factor names the channel.
    CHECK(send(1).nth.lbf == first.nth.lbf);
    CHECK_FALSE(send(2).nth.lbf == first.nth.lbf);
  }
  RunningSwitch running;
  CHECK_FALSE(try_to_open(running.device("balance=flow")));
}

TEST_CASE("the line of a device is as fast as its port of the switch, or as the medium below") {
  const RunningSwitch running;
  PortPair ports(running.device(), running.device());
  CHECK(ports.a->facts().line_bytes_per_second == RunningSwitch::bytes_per_second);
  const std::string at = "link(" + to_string(running.at()) + "):fault(rate=";
  const auto slow = PortPair::open(at + "8Mbit):udp:127.0.0.1:0");
  CHECK(slow->facts().line_bytes_per_second == 1'000'000);
  const auto fast = PortPair::open(at + "80Gbit):udp:127.0.0.1:0");
  CHECK(fast->facts().line_bytes_per_second == RunningSwitch::bytes_per_second);
}

TEST_CASE("a frame whose head leaves no room for NTH arrives, and settles") {
  RunningSwitch running;
  PortPair ports(running.device(), running.device());
  for (unsigned round = 1; round <= 1000; ++round) {
    TxFrame* frame = link_frame(ports, TxFrame::head_room);
    REQUIRE(ports.a->send({&frame, 1}, ports.now()) == 1);
    CHECK(receive_one(ports).bytes == TxFrame::head_room);
    CHECK(ports.a->settled() <= round);
  }
  CHECK(ports.a->settled() == 1000);
}

TEST_CASE("a CNA that another device has is refused, until that device is closed") {
  RunningSwitch running;
  auto first = PortPair::open(running.device("cna=7"));
  const auto second = try_to_open(running.device("cna=7"));
  REQUIRE_FALSE(second);
  CHECK(second.status() == Status::address_in_use);
  CHECK(second.error().message.find("another device with the CNA 7. Fix: ") != std::string::npos);
  first.reset();
  CHECK(try_to_open(running.device("cna=7")));
}

TEST_CASE("a device whose CNA another one took while the switch was restarted says why") {
  auto running = std::make_unique<RunningSwitch>();
  PortPair ports(running->device("cna=7"), running->device("cna=8"));
  const std::string at = "udp:" + to_string(running->at()) + "?ecn=yes";
  running.reset();
  running = std::make_unique<RunningSwitch>(at);
  const auto thief = try_to_open(running->device("cna=7"));
  REQUIRE(thief);
  const Time until = ports.now() + 10s;
  while (ports.a->counters().send_failures == 0 && ports.now() < until) {
    REQUIRE(send_packet(ports, *ports.a, ports.b->facts().self, packet_of(100, 1)));
    RxFrame frame{};
    if (ports.a->receive({&frame, 1}, ports.now()) > 0) ports.a->release({&frame, 1});
    std::this_thread::sleep_for(1ms);
  }
  CHECK(ports.a->counters().send_failures > 0);
  CHECK(ports.a->counters().failure_text.find("with this one's CNA. Fix: ") != std::string::npos);
  CHECK(ports.b->counters().failure_text.empty());
}

TEST_CASE("a link is refused if no switch answers, or if the device below is not a network") {
  const auto nothing = try_to_open("link(127.0.0.1:9):udp:127.0.0.1:0");
  REQUIRE_FALSE(nothing);
  CHECK(nothing.status() == Status::peer_unreachable);
  CHECK(nothing.error().message.find("no switch answers at 127.0.0.1:9. Fix: ") !=
        std::string::npos);
  RunningSwitch running;
  for (const std::string device :
       {"link(127.0.0.1):sim:link-test", "link(127.0.0.1):udp:[::1]:0",
        "link():udp:", "link(127.0.0.1,cna=0):udp:", "link(127.0.0.1,cna=16777216):udp:",
        "link(127.0.0.1,sl=16):udp:"}) {
    const auto refused = try_to_open(device);
    REQUIRE_FALSE(refused);
    CHECK(refused.status() == Status::invalid_argument);
  }
}

// Sends a datagram to the second port, which must count it and hand nothing on.
void check_counted(PortPair& ports, int from, std::span<const std::byte> datagram) {
  SocketAddress at;
  socklen_t length = sizeof at;
  REQUIRE(getsockname(ports.b->descriptors()[0], &at.any, &length) == 0);
  const auto bytes = static_cast<ssize_t>(datagram.size());
  REQUIRE(sendto(from, datagram.data(), datagram.size(), 0, &at.any, length) == bytes);
  const Time until = ports.now() + std::chrono::seconds(2);
  while (ports.now() < until && ports.b->counters().malformed == 0) {
    RxFrame frame{};
    REQUIRE(ports.b->receive({&frame, 1}, ports.now()) == 0);
  }
  CHECK(ports.b->counters().malformed == 1);
  CHECK(ports.b->counters().frames_received == 0);
}

TEST_CASE("datagrams that do not come from the switch are counted, and not handed on") {
  RunningSwitch running;
  PortPair ports(running.device(), running.device());
  const int outside = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const std::array<std::byte, 60> forged{std::byte{0x70}, std::byte{1}};
  check_counted(ports, outside, forged);
  close(outside);
}

TEST_CASE("packets for another device, or of none, are counted, and not handed on") {
  RunningSwitch running;
  PortPair ports(running.device("cna=1"), running.device("cna=2"));
  const bool for_another = GENERATE(true, false);
  std::array<std::byte, 60> packet{};
  const std::span<std::byte> head(packet);
  LinkWord{}.emit(head.first<LinkWord::size>());
  Cna24Nth{.source = for_another ? 1u : 0u, .destination = for_another ? 3u : 2u}.emit(
      head.subspan<LinkWord::size, Cna24Nth::size>());
  check_counted(ports, running.socket(), packet);
}

}  // namespace
}  // namespace urma::test
