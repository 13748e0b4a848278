// SPDX-License-Identifier: Apache-2.0
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "drivers/udp/udp_socket.h"
#include "tests/catch.h"
#include "tests/drivers/io_ways.h"
#include "tests/drivers/ports.h"

namespace urma::test {
namespace {

Result<std::unique_ptr<drivers::PacketPort>> try_open(std::string_view text) {
  const auto device = drivers::parse_device_string(text);
  if (!device) return device.error();
  return drivers::open_port(*device);
}

TEST_CASE("without an address, a port gets the first free loopback address with the UB port") {
  const auto first = PortPair::open("udp:");
  const auto second = PortPair::open("udp:");
  for (const auto* port : {first.get(), second.get()}) {
    const Endpoint self = port->facts().self;
    CHECK(self.port == ub_port);
    CHECK(to_string(self.address).starts_with("127.0.0."));
    CHECK(port->facts().eid == self.address);
  }
}

TEST_CASE("if the UB port is occupied, a device gets another port and a random EID") {
  const auto first = PortPair::open("udp:127.0.0.201");
  const auto second = PortPair::open("udp:127.0.0.201");
  CHECK(first->facts().self.port == ub_port);
  CHECK(second->facts().self.port != ub_port);
  CHECK(second->facts().self.address == first->facts().self.address);
  CHECK_FALSE(second->facts().eid == first->facts().eid);
  CHECK(to_string(second->facts().eid).starts_with("fd"));
}

TEST_CASE("port 0 means any free port except the UB port") {
  for (const std::string address : {"127.0.0.204", "[::1]"}) {
    const auto client = try_open("udp:" + address + ":0");
    REQUIRE(client.ok());
    CHECK((*client)->facts().self.port != ub_port);
    CHECK((*client)->facts().eid != (*client)->facts().self.address);
  }
  const auto client = try_open("udp:127.0.0.204:0");
  const auto server = try_open("udp:127.0.0.204");
  CHECK((*server)->facts().self.port == ub_port);
  CHECK_FALSE(try_open("udp:127.0.0.204:00").ok());
}

TEST_CASE("a port number that is given is used or refused") {
  const auto first = PortPair::open("udp:127.0.0.202:5001");
  CHECK(first->facts().self.port == 5001);
  const auto second = try_open("udp:127.0.0.202:5001");
  REQUIRE_FALSE(second.ok());
  CHECK(second.status() == Status::address_in_use);
  CHECK(second.error().message.find("127.0.0.202:5001") != std::string::npos);
}

TEST_CASE("the same rules hold for IPv6") {
  PortPair ports("udp:[::1]", "udp:[::1]:5002");
  CHECK(ports.b->facts().self.port == 5002);
  const Packet packet = packet_of(300, 1);
  send_packet(ports, *ports.a, ports.b->facts().self, packet);
  const auto arrived = receive_packets(ports, *ports.b, 1);
  REQUIRE(arrived.size() == 1);
  CHECK(arrived[0] == packet);
}

TEST_CASE("the error for a device that cannot be opened says why, and what to do") {
  struct Case {
    const char* device;
    Status status;
    const char* says;
  };
  const Case cases[] = {
      {"udp:0.0.0.0", Status::invalid_argument, "wildcard"},
      {"udp:[::]", Status::invalid_argument, "wildcard"},
      {"udp:203.0.113.77", Status::invalid_argument, "address of this machine"},
      {"udp:[fe80::1]", Status::invalid_argument, "(\"[fe80::1]\"): a link-local address"},
      {"udp:here", Status::invalid_argument, "IPv4 or IPv6"},
      {"udp:localhost", Status::invalid_argument, "write it like 127.0.0.1"},
      {"udp:127.0.0.1:99999", Status::invalid_argument, "port"},
      {"udp:127.0.0.1?mtu=3000", Status::invalid_argument, "(\"3000\"): the value of mtu must be"},
      {"fault():udp:?mtu=1500&gso=no", Status::invalid_argument,
       "at character 18 (\"1500&gso=no\")"},
      {"udp:127.0.0.1?ipid=7", Status::invalid_argument, "ipid must be 0 or kernel"},
      {"udp:?ipid=0&gso=yes", Status::invalid_argument, "gso must be no, with ipid=0"},
      {"udp:?io=poll", Status::invalid_argument, "(\"poll\"): the value of io must be auto, mmsg"},
      {"udp:?io=", Status::invalid_argument, "value is missing"},
      {"udp:?io=uring&io=mmsg", Status::invalid_argument, "io"},
      {"udp:?ecn=on", Status::invalid_argument, "(\"on\"): the value of ecn must be yes or no"},
      {"fault(rate=1Gbit,mark=9K):udp:", Status::invalid_argument,
       "(\"mark=9K):udp:\"): the wrapped device does not carry the ECN field"},
      {"fault(in.rate=1Gbit,in.mark=9K):cxl:", Status::invalid_argument, "\"in.mark=9K):cxl:\""},
      {"udp:127.0.0.1?mtu=0", Status::invalid_argument, "mtu must be a size"},
      {"udp:127.0.0.1?colour=red", Status::invalid_argument, "no such option"},
      {"tcp:127.0.0.1", Status::invalid_argument, "no driver of this name"},
      {"fault(loss=200%):udp:", Status::invalid_argument, "a fraction"},
      {"fault:udp:", Status::invalid_argument, "wraps another device"},
  };
  for (const Case& one : cases) {
    INFO(one.device);
    const auto port = try_open(one.device);
    REQUIRE_FALSE(port.ok());
    CHECK(port.status() == one.status);
    INFO(port.error().message);
    CHECK(port.error().message.find(one.says) != std::string::npos);
    const size_t fix = port.error().message.find("Fix: ");
    CHECK(fix != std::string::npos);
    CHECK(port.error().message.find("Fix: ", fix + 1) == std::string::npos);
  }
}

TEST_CASE("the rate of an interface is the speed that it states, if it states one") {
  using drivers::udp::rate_of_speed;
  CHECK(rate_of_speed("10000\n") == 1'250'000'000);
  CHECK(rate_of_speed("400000\n") == 50'000'000'000);
  for (const char* unknown :
       {"", "\n", "-1\n", "0\n", "4294967295\n", "fast\n", "99999999999999999999999\n"}) {
    INFO(unknown);
    CHECK(rate_of_speed(unknown) == 0);
  }
}

TEST_CASE("an interface without a device behind it has no rate, whatever it states") {
  namespace fs = std::filesystem;
  const fs::path place = fs::temp_directory_path() / ("urma-udp-" + std::to_string(getpid()));
  const auto describe = [&](const char* file, const char* text) {
    std::ofstream(place / file) << text;
    return drivers::udp::rate_of_interface(place.string());
  };
  fs::create_directories(place);
  CHECK(describe("speed", "25000\n") == 0);
  CHECK(describe("uevent", "INTERFACE=veth0\nIFINDEX=7\n") == 0);
  CHECK(describe("uevent", "DEVTYPE=bridge\nINTERFACE=br0\n") == 0);
  CHECK(describe("uevent", "DEVTYPE=vlan\nINTERFACE=eth0.5\n") == 3'125'000'000);
  CHECK(describe("uevent", "DEVTYPE=bond\nINTERFACE=bond0\n") == 3'125'000'000);
  CHECK(describe("uevent", "INTERFACE=eth0\n") == 0);
  CHECK(describe("device", "") == 3'125'000'000);
  CHECK(drivers::udp::rate_of_interface("/sys/class/net/none") == 0);
  fs::remove_all(place);
}

TEST_CASE("without GSO and GRO the same packets arrive") {
  PortPair ports("udp:?gso=no", "udp:?gro=no");
  std::vector<Packet> sent;
  for (unsigned i = 0; i < 50; ++i) {
    sent.push_back(packet_of(500, i));
    send_packet(ports, *ports.a, ports.b->facts().self, sent.back());
  }
  CHECK(receive_packets(ports, *ports.b, 50) == sent);
}

TEST_CASE("an ICMP report of an unreachable port is read, so the socket does not stay readable") {
  const std::string way = GENERATE(from_range(io_ways()));
  INFO("way " << way);
  PortPair ports("udp:" + way, "udp:" + way);
  Endpoint nobody = ports.a->facts().self;
  nobody.port = 9;
  for (unsigned i = 0; i < 20; ++i) {
    send_packet(ports, *ports.a, nobody, packet_of(50, i));
    receive_packets(ports, *ports.a, 0);
    RxFrame frame;
    CHECK(ports.a->receive({&frame, 1}, ports.now()) == 0);
  }
  CHECK(ports.a->counters().unreachable == 20);
  CHECK(!readable(*ports.a, 0));
}

// The kernel reports the error of a datagram twice: to the next call on the socket, and in the
// socket's error queue. Both are the same ICMP message.
TEST_CASE("each ICMP message is counted once, whichever call reports it") {
  const std::string way = GENERATE(from_range(io_ways()));
  INFO("way " << way);
  for (const auto& [first, second] : {std::pair("udp:", "udp:"), {"udp:[::1]", "udp:[::1]:5011"}}) {
    INFO(first);
    constexpr unsigned times = 30;
    // The loopback interface answers immediately, so each error has been reported when `send`
    // returns.
    const auto look = [](PortPair& ports) {
      RxFrame frame;
      for (int i = 0; i < 3; ++i) CHECK(ports.a->receive({&frame, 1}, read_clock()) == 0);
    };
    PortPair ports(first + way, second + way);
    Endpoint nobody = ports.a->facts().self;
    nobody.port = 9;
    // Only `send` gets the errors, of all datagrams except the last.
    for (unsigned i = 0; i < times; ++i) send_packet(ports, *ports.a, nobody, packet_of(50, i));
    look(ports);
    CHECK(ports.a->counters().unreachable == times);
    // Only `receive` gets the errors.
    for (unsigned i = 0; i < times; ++i) {
      send_packet(ports, *ports.a, nobody, packet_of(50, i));
      look(ports);
    }
    CHECK(ports.a->counters().unreachable == 2 * times);
    // In bursts there is one ICMP message for each datagram.
    const uint64_t before = ports.a->counters().frames_sent;
    for (unsigned i = 0; i < times; ++i) {
      send_packet(ports, *ports.a, nobody, packet_of(3000, i));
      look(ports);
    }
    CHECK(ports.a->counters().frames_sent == before + times);
    CHECK(ports.a->counters().unreachable == 3 * times);
    CHECK(ports.a->counters().send_failures == 0);
    CHECK(!readable(*ports.a, 0));
  }
}

TEST_CASE("a datagram too large for this host is a failed send, and no peer becomes unreachable") {
  const std::string way = GENERATE(from_range(io_ways()));
  INFO("way " << way);
  PortPair ports("udp:" + way, "udp:" + way);
  const Packet packet(65'530, std::byte{1});  // longer than a UDP datagram can be
  TxFrame* frame = nullptr;
  REQUIRE(ports.a->lend({&frame, 1}) == 1);
  frame->head_bytes = frame->tail_bytes = 0;
  frame->piece_count = 1;
  frame->pieces[0] = {packet.data(), static_cast<uint32_t>(packet.size())};
  frame->to = ports.b->facts().self;
  REQUIRE(ports.a->send({&frame, 1}, ports.now()) == 1);
  CHECK(ports.a->counters().send_failures == 1);
  CHECK(ports.a->counters().latest_failure == EMSGSIZE);
  CHECK(ports.a->counters().unreachable == 0);
  CHECK(!readable(*ports.a, 0));
}

// ---- talk: a peer with which small datagrams are exchanged one at a time

constexpr unsigned enough_to_talk = 100;

// Sends one datagram in each direction, this many times.
void talk(PortPair& ports, drivers::PacketPort& a, drivers::PacketPort& b, unsigned rounds) {
  for (unsigned i = 0; i < rounds; ++i) {
    for (const auto& [from, at] : {std::pair(&a, &b), std::pair(&b, &a)}) {
      const Packet packet = packet_of(60 + i % 100, i);
      REQUIRE(send_packet(ports, *from, at->facts().self, packet));
      const auto arrived = receive_packets(ports, *at, 1);
      REQUIRE(arrived.size() == 1);
      REQUIRE(arrived[0] == packet);
    }
  }
}

// Returns whether the port has a socket that is connected to the other port.
bool talks_to(const drivers::PacketPort& port, const drivers::PacketPort& other) {
  SocketAddress partner{};
  socklen_t length = sizeof partner;
  return getpeername(port.descriptors()[1], &partner.any, &length) == 0 &&
         from_sockaddr(partner.any) == other.facts().self;
}

TEST_CASE("during talk with one peer, datagrams of all others arrive as before") {
  const std::string way = GENERATE(from_range(io_ways()));
  INFO("way " << way);
  for (const auto& [first, second] : {std::pair("udp:", "udp:"), {"udp:[::1]", "udp:[::1]:5003"}}) {
    PortPair ports(first + way, second + way);
    const auto third =
        PortPair::open((second == std::string_view("udp:") ? "udp:" : "udp:[::1]:5004") + way);
    for (unsigned round = 0; round < 3; ++round) {
      talk(ports, *ports.a, *ports.b, enough_to_talk);
      CHECK(talks_to(*ports.a, *ports.b));
      CHECK(talks_to(*ports.b, *ports.a));
      talk(ports, *third, *ports.a, 1);
      CHECK(readable(*ports.a, 0) == false);
      send_packet(ports, *third, ports.a->facts().self, packet_of(60, 5));
      CHECK(readable(*ports.a, 1000));
      CHECK(receive_packets(ports, *ports.a, 1).size() == 1);
      talk(ports, *ports.b, *third, enough_to_talk);  // and the talk changes to another partner
      CHECK(talks_to(*ports.b, *third));
    }
  }
}

// Sends as many datagrams as one call can.
std::vector<Packet> send_burst(drivers::PacketPort& from, const Endpoint& to, unsigned count,
                               size_t bytes, Time now, Ecn ecn = Ecn::not_ect) {
  std::vector<Packet> sent;
  std::vector<TxFrame*> frames(count);
  REQUIRE(from.lend(frames) == count);
  for (unsigned i = 0; i < count; ++i) sent.push_back(packet_of(bytes, i));
  for (unsigned i = 0; i < count; ++i) {
    TxFrame& frame = *frames[i];
    frame.head_bytes = frame.tail_bytes = 0;
    frame.piece_count = 1;
    frame.pieces[0] = {sent[i].data(), static_cast<uint32_t>(bytes)};
    frame.ecn = ecn;
    frame.to = to;
  }
  REQUIRE(from.send(frames, now) == count);
  return sent;
}

// The kernel numbers the datagrams that a connected socket sends, and those that it segments.
// Datagrams from an unconnected socket have identification 0; tests/scapy/literal_reader.py reads
// it from the wire.
TEST_CASE("with ipid=0 no socket is connected, and the kernel segments nothing") {
  PortPair ports("udp:?ipid=0", "udp:?ipid=0");
  talk(ports, *ports.a, *ports.b, 2 * enough_to_talk);
  CHECK_FALSE(talks_to(*ports.a, *ports.b));
  CHECK_FALSE(talks_to(*ports.b, *ports.a));
  const auto sent = send_burst(*ports.a, ports.b->facts().self, 30, 4000, ports.now());
  CHECK(receive_packets(ports, *ports.b, sent.size()) == sent);
  CHECK(setting(*ports.a, "segmentation") == "no");
  CHECK(setting(*ports.a, "udp.ipid") == "0");
  CHECK(ports.a->facts().description.find("IPv4 ID 0") != std::string::npos);
  // IPv6 has no identification, so there ipid=0 changes nothing.
  PortPair six("udp:[::1]?ipid=0", "udp:[::1]:5012");
  talk(six, *six.a, *six.b, enough_to_talk);
  CHECK(talks_to(*six.a, *six.b));
  CHECK(six.a->facts().description.find("IPv4 ID") == std::string::npos);
}

TEST_CASE("a burst arrives whole between two exchanges of small datagrams") {
  const std::string way = GENERATE(from_range(io_ways()));
  INFO("way " << way);
  PortPair ports("udp:" + way, "udp:" + way);
  for (const size_t bytes : {4000u, 700u, 60u}) {
    talk(ports, *ports.a, *ports.b, enough_to_talk);
    const auto sent = send_burst(*ports.a, ports.b->facts().self, 30, bytes, ports.now());
    CHECK(receive_packets(ports, *ports.b, sent.size()) == sent);
  }
}

TEST_CASE("datagrams that came coalesced just before talk begins are split again") {
  const std::string way = GENERATE(from_range(io_ways()));
  INFO("way " << way);
  // Talk begins after one of these numbers of turns.
  for (unsigned turns = 1; turns < enough_to_talk; ++turns) {
    PortPair ports("udp:" + way, "udp:" + way);
    talk(ports, *ports.a, *ports.b, enough_to_talk);
    const auto end = send_burst(*ports.b, ports.a->facts().self, 30, 4000, ports.now());
    CHECK(receive_packets(ports, *ports.a, end.size()) == end);
    talk(ports, *ports.a, *ports.b, turns);
    const auto sent = send_burst(*ports.b, ports.a->facts().self, 30, 700, ports.now());
    send_packet(ports, *ports.a, ports.b->facts().self, packet_of(60, 1));
    CHECK(receive_packets(ports, *ports.a, sent.size()) == sent);
  }
}

TEST_CASE("while one socket always has datagrams, those of the other are received in good time") {
  const std::string way = GENERATE(from_range(io_ways()));
  INFO("way " << way);
  for (const bool partner_floods : {true, false}) {
    PortPair ports("udp:" + way, "udp:" + way);
    const auto third = PortPair::open("udp:" + way);
    talk(ports, *ports.a, *ports.b, enough_to_talk);
    auto& flooder = partner_floods ? *ports.b : *third;
    auto& speaker = partner_floods ? *third : *ports.b;
    const Endpoint here = ports.a->facts().self;
    std::array<RxFrame, 16> frames;
    // The test sets the time of the port.
    Time now = ports.now();
    const auto look = [&] {
      now += std::chrono::microseconds(20);
      const size_t got = ports.a->receive(frames, now);
      bool heard = false;
      for (const RxFrame& frame : std::span(frames).first(got)) {
        heard = heard || *frame.from == speaker.facts().self;
        ports.a->release({&frame, 1});
      }
      return heard;
    };
    for (int i = 0; i < 4; ++i) {
      send_burst(flooder, here, 60, 700, now);
      CHECK_FALSE(look());
    }
    TxFrame* frame = nullptr;
    REQUIRE(speaker.lend({&frame, 1}) == 1);
    const Packet packet = packet_of(60, 1);
    std::copy(packet.begin(), packet.end(), frame->head);
    frame->head_bytes = static_cast<uint8_t>(packet.size());
    frame->piece_count = frame->tail_bytes = 0;
    frame->to = here;
    REQUIRE(speaker.send({&frame, 1}, now) == 1);
    bool heard = false;
    for (int looks = 0; looks < 300 && !heard; ++looks) {
      send_burst(flooder, here, 60, 700, now);
      heard = look();
    }
    CHECK(heard);
  }
}

TEST_CASE("a datagram from any sender is received by the first poll after a pause") {
  const std::string way = GENERATE(from_range(io_ways()));
  INFO("way " << way);
  PortPair ports("udp:" + way, "udp:" + way);
  const auto third = PortPair::open("udp:" + way);
  talk(ports, *ports.a, *ports.b, enough_to_talk);
  for (int i = 0; i < 10; ++i) {
    send_packet(ports, i % 2 == 0 ? *third : *ports.b, ports.a->facts().self, packet_of(60, 1));
    RxFrame frame;
    REQUIRE(ports.a->receive({&frame, 1}, ports.now() + i * std::chrono::microseconds(100)) == 1);
    ports.a->release({&frame, 1});
  }
}

// Returns whether a second socket can bind the address with an option that would share it.
bool can_be_taken(const Endpoint& address, int option) {
  SocketAddress at{};
  const socklen_t length = to_sockaddr(address, at);
  const int thief = socket(at.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  constexpr int on = 1;
  setsockopt(thief, SOL_SOCKET, option, &on, sizeof on);
  const bool taken = bind(thief, &at.any, length) == 0;
  close(thief);
  return taken;
}

TEST_CASE("the address stays occupied during talk") {
  const std::string way = GENERATE(from_range(io_ways()));
  INFO("way " << way);
  PortPair ports("udp:127.0.0.203:5005" + way, "udp:" + way);
  talk(ports, *ports.a, *ports.b, enough_to_talk);
  REQUIRE(talks_to(*ports.a, *ports.b));
  const auto thief = try_open("udp:127.0.0.203:5005");
  REQUIRE_FALSE(thief.ok());
  CHECK(thief.status() == Status::address_in_use);
  for (const int option : {SO_REUSEADDR, SO_REUSEPORT}) {
    CHECK_FALSE(can_be_taken(ports.a->facts().self, option));
  }
  ports.a.reset();
  CHECK(try_open("udp:127.0.0.203:5005").ok());
}

TEST_CASE("talk ends when the partner leaves, and begins again when it is back") {
  const std::string way = GENERATE(from_range(io_ways()));
  INFO("way " << way);
  PortPair ports("udp:" + way, "udp:127.0.0.204:5006" + way);
  talk(ports, *ports.a, *ports.b, enough_to_talk);
  const Endpoint there = ports.b->facts().self;
  ports.b.reset();
  for (unsigned i = 0; i < 5; ++i) {
    REQUIRE(send_packet(ports, *ports.a, there, packet_of(50, i)));
    RxFrame frame;
    CHECK(ports.a->receive({&frame, 1}, read_clock()) == 0);
  }
  // The errors are reported to the connected socket, by `send` and by a `receive` of one datagram.
  CHECK(ports.a->counters().unreachable == 5);
  CHECK(readable(*ports.a, 0) == false);
  ports.b = PortPair::open("udp:127.0.0.204:5006" + way);
  talk(ports, *ports.a, *ports.b, enough_to_talk);
}

// ---- ECN

// A socket of another program, which sends and reads TOS or traffic class.
class PlainSocket {
 public:
  explicit PlainSocket(const Eid& address) {
    SocketAddress at{};
    socklen_t length = to_sockaddr({address, 0}, at);
    four_ = at.any.sa_family == AF_INET;
    descriptor_ = socket(at.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    constexpr int on = 1;
    setsockopt(descriptor_, level(), four_ ? IP_RECVTOS : IPV6_RECVTCLASS, &on, sizeof on);
    REQUIRE(bind(descriptor_, &at.any, length) == 0);
    REQUIRE(getsockname(descriptor_, &at.any, &length) == 0);
    self_ = from_sockaddr(at.any);
  }
  PlainSocket(const PlainSocket&) = delete;
  PlainSocket& operator=(const PlainSocket&) = delete;
  ~PlainSocket() { close(descriptor_); }

  const Endpoint& self() const { return self_; }
  void send(const Endpoint& to, const Packet& packet, int tos) const {
    SocketAddress at{};
    const socklen_t length = to_sockaddr(to, at);
    setsockopt(descriptor_, level(), four_ ? IP_TOS : IPV6_TCLASS, &tos, sizeof tos);
    REQUIRE(sendto(descriptor_, packet.data(), packet.size(), 0, &at.any, length) > 0);
  }
  // Receives one datagram. Returns its TOS or traffic class.
  int receive(Packet& packet) const {
    packet.resize(9000);
    alignas(cmsghdr) std::array<std::byte, 64> control;
    iovec vector{packet.data(), packet.size()};
    msghdr header{};
    header.msg_iov = &vector;
    header.msg_iovlen = 1;
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    const ssize_t bytes = recvmsg(descriptor_, &header, 0);
    REQUIRE(bytes >= 0);
    packet.resize(static_cast<size_t>(bytes));
    const cmsghdr* const told = CMSG_FIRSTHDR(&header);
    REQUIRE(told != nullptr);
    return *CMSG_DATA(told);
  }

 private:
  int level() const { return four_ ? IPPROTO_IP : IPPROTO_IPV6; }

  bool four_;
  int descriptor_;
  Endpoint self_;
};

// One packet that is sent alone, one too large for that, and a train.
TEST_CASE("the ECN field on the wire is the frame's with ecn=yes, and Not-ECT without it") {
  const std::string way = GENERATE(from_range(io_ways()));
  INFO("way " << way);
  for (const std::string device : {"udp:127.0.0.1:0", "udp:[::1]:0"}) {
    for (const bool carries : {true, false}) {
      const std::string options = !carries ? way : way + (way.empty() ? "?" : "&") + "ecn=yes";
      INFO(device << options);
      const auto port = PortPair::open(device + options);
      const PlainSocket plain(port->facts().self.address);
      for (const auto& [count, bytes] :
           {std::pair(1u, size_t{60}), {1u, size_t{900}}, {6u, size_t{900}}}) {
        for (const Ecn ecn : {Ecn::ect0, Ecn::not_ect, Ecn::ce, Ecn::ect1}) {
          const auto sent = send_burst(*port, plain.self(), count, bytes, read_clock(), ecn);
          for (const Packet& packet : sent) {
            Packet arrived;
            CHECK(plain.receive(arrived) == (carries ? static_cast<int>(ecn) : 0));
            CHECK(arrived == packet);
          }
        }
      }
    }
  }
}

TEST_CASE("the two bits of the ECN field are read from TOS and traffic class, with ecn=yes only") {
  const std::string way = GENERATE(from_range(io_ways()));
  INFO("way " << way);
  for (const std::string device : {"udp:127.0.0.1:0", "udp:[::1]:0"}) {
    for (const bool carries : {true, false}) {
      const std::string options = !carries ? way : way + (way.empty() ? "?" : "&") + "ecn=yes";
      INFO(device << options);
      const auto port = PortPair::open(device + options);
      const PlainSocket plain(port->facts().self.address);
      for (const int tos : {0, 1, 2, 3, 0xb8, 0xbb, 0xff, 0xfc}) {
        plain.send(port->facts().self, packet_of(70, 1), tos);
        RxFrame frame;
        while (port->receive({&frame, 1}, read_clock()) == 0) continue;
        CHECK(frame.ecn == (carries ? static_cast<Ecn>(tos & 3) : Ecn::not_ect));
        port->release({&frame, 1});
      }
    }
  }
}

TEST_CASE("during talk the ECN field of each datagram arrives") {
  for (const auto& [first, second] : {std::pair("udp:?ecn=yes", "udp:?ecn=yes"),
                                      {"udp:[::1]:5023?ecn=yes", "udp:[::1]:5024?ecn=yes"}}) {
    INFO(first);
    PortPair ports(first, second);
    talk(ports, *ports.a, *ports.b, enough_to_talk);
    REQUIRE(talks_to(*ports.a, *ports.b));
    for (unsigned i = 0; i < 40; ++i) {
      const Ecn ecn = static_cast<Ecn>(i % 4);
      const auto sent = send_ecn(ports, {ecn}, i == 30 ? 2000 : 60 + i);
      REQUIRE((receive_ecn(ports, 1) == sent));
      if (i % 2 == 0) talk(ports, *ports.b, *ports.a, 1);
    }
    CHECK(talks_to(*ports.b, *ports.a));
  }
}

// A receiver whose kernel joins datagrams of a train gets each train with one field.
TEST_CASE("trains with unlike ECN fields stay apart, on a port and on its connected socket") {
  PortPair ports("udp:?ecn=yes", "udp:?ecn=yes");
  for (const bool talking : {false, true}) {
    if (talking) talk(ports, *ports.a, *ports.b, enough_to_talk);
    for (const size_t bytes : {size_t{100}, size_t{700}, size_t{4000}}) {
      std::vector<Ecn> fields;
      for (unsigned i = 0; i < 48; ++i) fields.push_back(static_cast<Ecn>(i / 12 % 4));
      const uint64_t calls = ports.a->counters().calls_sent;
      const auto sent = send_ecn(ports, fields, bytes);
      CHECK(ports.a->counters().calls_sent == calls + 1);
      CHECK((receive_ecn(ports, sent.size()) == sent));
    }
  }
}

}  // namespace
}  // namespace urma::test
