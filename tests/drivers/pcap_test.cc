// SPDX-License-Identifier: Apache-2.0
// The contents of a capture, and the errors if one cannot be written.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "base/bits.h"
#include "drivers/pcap/ip_headers.h"
#include "drivers/pcap/pcap_port.h"
#include "tests/catch.h"
#include "tests/drivers/idle_port.h"
#include "tests/drivers/pcapng_reader.h"
#include "tests/drivers/ports.h"
#include "tests/drivers/window_file.h"
#include "tests/unit/mentions.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;
using drivers::PacketPort;
using drivers::pcap::CaptureFile;
using drivers::pcap::Direction;

// A path of one test, and the device that captures to it.
struct CapturePath {
  explicit CapturePath(const std::string& name)
      : path("/dev/shm/urma-test-" + std::to_string(getpid()) + "-" + name + ".pcapng") {
    unlink(path.c_str());
  }
  ~CapturePath() { unlink(path.c_str()); }
  std::string device(const std::string& inner, const std::string& options = "") const {
    return "pcap(file=" + path + options + "):" + inner;
  }
  Capture read() const { return read_capture(path); }

  std::string path;
};

// ---- headers

// Returns the folded sum over words in network order, which is 0xffff if the checksum is right.
uint32_t folded(std::span<const std::byte> bytes, uint32_t sum = 0) {
  for (size_t i = 0; i < bytes.size(); ++i)
    sum += static_cast<uint32_t>(bytes[i]) << (i % 2 == 0 ? 8 : 0);
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return sum;
}

// Returns where the UB packet begins in an IP packet. Checks the headers, including checksums.
size_t check_headers(const Packet& packet, const Endpoint& from, const Endpoint& to,
                     Ecn ecn = Ecn::not_ect) {
  const std::byte* const at = packet.data();
  const bool four = packet[0] >> 4 == std::byte{4};
  size_t udp = four ? 20 : 40;
  size_t length = packet.size() - udp;
  if (four) {
    CHECK(packet[1] == static_cast<std::byte>(ecn));
    CHECK(load_be<2>(at + 2) == packet.size());
    CHECK(load_be<4>(at + 4) == 0x4000);
    CHECK(packet[9] == std::byte{17});
    CHECK(folded(std::span(packet).first(20)) == 0xffff);
    CHECK(std::memcmp(at + 12, from.address.bytes.data() + 12, 4) == 0);
    CHECK(std::memcmp(at + 16, to.address.bytes.data() + 12, 4) == 0);
  } else {
    CHECK(load_be<4>(at) == (0x60000000 | static_cast<uint32_t>(ecn) << 20));
    CHECK(std::memcmp(at + 8, from.address.bytes.data(), 16) == 0);
    CHECK(std::memcmp(at + 24, to.address.bytes.data(), 16) == 0);
    if (length <= 65535) {
      CHECK(packet[6] == std::byte{17});
      CHECK(load_be<2>(at + 4) == length);
    } else {
      CHECK(packet[6] == std::byte{0});
      CHECK(load_be<2>(at + 4) == 0);
      CHECK(load_be<4>(at + 40) == 0x1100c204);
      CHECK(load_be<4>(at + 44) == length);
      udp += 8;
      length -= 8;
    }
  }
  CHECK(load_be<2>(at + udp) == from.port);
  CHECK(load_be<2>(at + udp + 2) == to.port);
  CHECK(load_be<2>(at + udp + 4) == (length > 65535 ? 0 : length));
  CHECK(load_be<2>(at + udp + 6) != 0);
  const auto addresses = four ? std::span(packet).subspan(12, 8) : std::span(packet).subspan(8, 32);
  const auto sum = static_cast<uint32_t>(length % 65535 + 17);
  CHECK(folded(std::span(packet).subspan(udp), folded(addresses, sum)) == 0xffff);
  return udp + 8;
}

TEST_CASE("the IP and UDP headers of a capture are valid, checksums included") {
  const Endpoint four[] = {{ipv4(10, 0, 0, 1), 4792}, {ipv4(10, 1, 255, 2), 5000}};
  const Endpoint six[] = {{parse_address("fd00::1").value(), 4792},
                          {parse_address("fd00::ffff:2").value(), 1}};
  unsigned round = 0;
  const auto check = [&](const Endpoint& from, const Endpoint& to, size_t bytes, bool is_four) {
    const auto ecn = static_cast<Ecn>(round++ % 4);
    INFO("bytes " << bytes << (is_four ? " on IPv4" : " on IPv6"));
    const size_t head = drivers::pcap::ip_header_bytes(from, to, bytes);
    REQUIRE(head <= drivers::pcap::most_ip_header_bytes);
    Packet packet(head, std::byte{0xee});
    const Packet payload = packet_of(bytes, 3);
    packet.insert(packet.end(), payload.begin(), payload.end());
    drivers::pcap::put_ip_headers(packet.data(), from, to, bytes, ecn);
    CHECK(packet[0] >> 4 == std::byte{is_four ? uint8_t{4} : uint8_t{6}});
    CHECK(check_headers(packet, from, to, ecn) == head);
    CHECK(std::equal(payload.begin(), payload.end(), packet.begin() + static_cast<long>(head)));
  };
  for (const size_t bytes : {0, 1, 20, 21, 22, 23, 8267, 65507}) {
    check(four[0], four[1], bytes, true);
    check(six[0], six[1], bytes, false);
    check(four[0], six[1], bytes, false);
  }
  for (const size_t bytes : {65527, 65528, 65535, 65611}) check(six[1], six[0], bytes, false);
}

// ---- contents

// The packets that must be in the file, in this order.
struct Expected {
  Direction direction;
  Packet packet;
  Ecn ecn = Ecn::not_ect;
};

void check_packets(const Capture& capture, const std::vector<Expected>& expected,
                   const Endpoint& self, const Endpoint& other, uint16_t to_port = ub_port) {
  REQUIRE(capture.packets.size() == expected.size());
  uint64_t last = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    INFO("packet " << i);
    const Captured& found = capture.packets[i];
    CHECK(found.direction == expected[i].direction);
    CHECK(found.had_bytes == found.bytes.size());
    CHECK(found.nanoseconds >= last);
    last = found.nanoseconds;
    const bool out = found.direction == Direction::out;
    Endpoint to = out ? other : self;
    to.port = to_port;
    const size_t head = check_headers(found.bytes, out ? self : other, to, expected[i].ecn);
    CHECK(Packet(found.bytes.begin() + static_cast<long>(head), found.bytes.end()) ==
          expected[i].packet);
  }
}

TEST_CASE("packets of both directions are in the file, whole and in order") {
  const CapturePath one("one");
  const CapturePath other("other");
  std::vector<Expected> here;
  std::vector<Expected> there;
  Endpoint a;
  Endpoint b;
  {
    PortPair ports(one.device("sim:pcap-both"), other.device("sim:pcap-both?delay=3us"));
    a = ports.a->facts().self;
    b = ports.b->facts().self;
    CHECK(mentions(ports.a->facts().description, "captured in " + one.path));
    for (unsigned i = 0; i < 300; ++i) {
      const Packet packet = packet_of(20 + i * 7 % 2000, i);
      const bool forth = i % 3 != 0;
      const Ecn ecn = static_cast<Ecn>(i % 4);
      REQUIRE(
          send_packet(ports, forth ? *ports.a : *ports.b, forth ? b : a, packet, 1 + i % 3, ecn));
      REQUIRE(receive_packets(ports, forth ? *ports.b : *ports.a, 1).size() == 1);
      here.push_back({forth ? Direction::out : Direction::in, packet, ecn});
      there.push_back({forth ? Direction::in : Direction::out, packet, ecn});
    }
    CHECK(ports.a->counters().uncaptured == 0);
  }
  for (const auto* side : {&one, &other}) {
    INFO(side->path);
    const Capture capture = side->read();
    check_packets(capture, side == &one ? here : there, side == &one ? a : b, side == &one ? b : a);
    CHECK(capture.ended);
    CHECK(capture.seen == 300);
    CHECK(capture.missing == 0);
    CHECK(capture.comment.empty());
    // The file has simulated time.
    CHECK(capture.packets.back().nanoseconds < 10'000'000'000);
  }
}

TEST_CASE("a capture of a real device has the time of the calendar") {
  const CapturePath path("calendar");
  const Duration before = read_calendar();
  {
    PortPair ports(path.device("udp:"), "udp:");
    REQUIRE(send_packet(ports, *ports.a, ports.b->facts().self, packet_of(50, 1)));
    REQUIRE(receive_packets(ports, *ports.b, 1).size() == 1);
  }
  const Capture capture = path.read();
  REQUIRE(capture.packets.size() == 1);
  const Duration stamped(static_cast<int64_t>(capture.packets[0].nanoseconds));
  CHECK(stamped >= before);
  CHECK(stamped <= read_calendar());
}

TEST_CASE("a capture shows Not-ECT if the captured device does not carry the ECN field") {
  for (const bool carries : {true, false}) {
    const CapturePath path("ecn");
    const std::string device = carries ? "udp:?ecn=yes" : "udp:";
    Endpoint self;
    Endpoint other;
    const Packet packet = packet_of(50, 1);
    {
      PortPair ports(path.device(device), device);
      self = ports.a->facts().self;
      other = ports.b->facts().self;
      REQUIRE(send_packet(ports, *ports.a, other, packet, 1, Ecn::ect0));
    }
    const Ecn expected = carries ? Ecn::ect0 : Ecn::not_ect;
    check_packets(path.read(), {{Direction::out, packet, expected}}, self, other);
  }
}

TEST_CASE("a capture contains the packets at its position among several wrappers") {
  const CapturePath inner("inner");
  const CapturePath outer("outer");
  size_t arrived = 0;
  {
    PortPair ports(outer.device("fault(loss=50%):" + inner.device("sim:pcap-row")), "sim:pcap-row");
    for (unsigned i = 0; i < 200; ++i) {
      REQUIRE(send_packet(ports, *ports.a, ports.b->facts().self, packet_of(100, i)));
    }
    arrived = receive_packets(ports, *ports.b, 200).size();
  }
  CHECK(arrived > 50);
  CHECK(arrived < 150);
  CHECK(outer.read().packets.size() == 200);
  CHECK(inner.read().packets.size() == arrived);
}

TEST_CASE("a capture with snap= keeps that many bytes of each packet") {
  const CapturePath path("snap");
  {
    PortPair ports(path.device("sim:pcap-snap", ",snap=101"), "sim:pcap-snap");
    for (const size_t bytes : {20, 52, 53, 54, 55, 2000}) {
      REQUIRE(send_packet(ports, *ports.a, ports.b->facts().self, packet_of(bytes, 1)));
    }
  }
  const Capture capture = path.read();
  CHECK(capture.snap_bytes == 101);
  std::vector<std::pair<size_t, size_t>> sizes;
  for (const Captured& one : capture.packets) sizes.emplace_back(one.had_bytes, one.bytes.size());
  const std::vector<std::pair<size_t, size_t>> expected = {{68, 68},   {100, 100}, {101, 101},
                                                           {102, 101}, {103, 101}, {2048, 101}};
  CHECK(sizes == expected);
}

// A port that accepts as many frames as the test allows.
class StubbornPort final : public IdlePort {
 public:
  StubbornPort() {
    facts_.self = {ipv4(10, 0, 0, 1), ub_port};
    facts_.description = "stubborn";
  }
  size_t send(std::span<TxFrame* const> frames, Time) override {
    const size_t now = std::min(frames.size(), takes);
    takes -= now;
    return now;
  }

  size_t takes = 0;
};

TEST_CASE("a packet is in the file only once the port has accepted it") {
  const CapturePath path("partial");
  constexpr size_t count = 200;
  std::vector<Expected> expected;
  const Endpoint other{ipv4(10, 0, 0, 2), ub_port};
  {
    auto stubborn = std::make_unique<StubbornPort>();
    StubbornPort& inner = *stubborn;
    auto file = CaptureFile::open({.path = path.path}, "a", "b");
    REQUIRE(file.ok());
    drivers::pcap::PcapPort port(std::move(stubborn), std::move(*file), {.path = path.path});
    std::vector<TxFrame> frames(count);
    std::vector<TxFrame*> pointers(count);
    for (unsigned i = 0; i < count; ++i) {
      expected.push_back({Direction::out, packet_of(30 + i, i)});
      frames[i].pieces[0] = {expected[i].packet.data(), 30 + i};
      frames[i].piece_count = 1;
      frames[i].to = other;
      pointers[i] = &frames[i];
    }
    size_t sent = 0;
    for (const size_t takes : {0, 1, 63, 64, 65, 0, 7}) {
      inner.takes = takes;
      CHECK(port.send(std::span(pointers).subspan(sent), Time{}) == takes);
      sent += takes;
    }
    CHECK(sent == count);
  }
  const Capture capture = path.read();
  check_packets(capture, expected, {ipv4(10, 0, 0, 1), ub_port}, other);
  CHECK(capture.seen == count);
}

TEST_CASE("packets written into a window's own memory are captured, too, and no memory is mapped") {
  const WindowFile window("pcap");
  const CapturePath path("window");
  const std::string plain = window.device("?size=16M");
  std::vector<Expected> expected;
  Endpoint a;
  Endpoint b;
  {
    PortPair ports(path.device(plain), plain);
    a = ports.a->facts().self;
    b = ports.b->facts().self;
    CHECK(ports.a->memory() == nullptr);
    CHECK(ports.b->memory() != nullptr);
    CHECK(ports.a->facts().mapped.base == nullptr);
    Ways& ways = *ports.a->ways();
    const uint32_t way = ways.way_to(b);
    REQUIRE(send_packet(ports, *ports.a, b, packet_of(50, 0)));
    expected.push_back({Direction::out, packet_of(50, 0)});
    for (unsigned i = 1; i < 400; ++i) {
      const Packet packet = packet_of(i % 7 == 0 ? 65'600 : i, i);
      std::byte* memory = nullptr;
      while (memory == nullptr) {
        memory = ways.begin(way, static_cast<uint32_t>(packet.size()));
        if (memory == nullptr) REQUIRE_FALSE(receive_packets(ports, *ports.b, 1).empty());
      }
      std::copy(packet.begin(), packet.end(), memory);
      ways.end();
      expected.push_back({Direction::out, packet});
    }
    ways.notify();
    while (!state_of(*ports.a, b).empty) receive_packets(ports, *ports.b, 1);
    REQUIRE(send_packet(ports, *ports.b, a, packet_of(9, 5)));
    REQUIRE(receive_packets(ports, *ports.a, 1).size() == 1);
    expected.push_back({Direction::in, packet_of(9, 5)});
  }
  check_packets(path.read(), expected, a, b, drivers::pcap::ctp_port);
}

// ---- times of writing

TEST_CASE("a killed process leaves all packets that were captured more than 10 ms before") {
  const CapturePath path("killed");
  PortPair ports(path.device("sim:pcap-killed"), "sim:pcap-killed");
  CHECK(ports.a->next_arrival() == never);
  const Time begun = ports.now();
  for (unsigned i = 0; i < 10; ++i) {
    REQUIRE(send_packet(ports, *ports.a, ports.b->facts().self, packet_of(100, i)));
  }
  CHECK(path.read().packets.empty());
  CHECK(ports.a->next_arrival() == begun + 10ms);
  ports.a->receive({}, begun + 10ms);
  CHECK(ports.a->next_arrival() == never);
  CHECK(path.read().packets.size() == 10);
  CHECK_FALSE(path.read().ended);
  REQUIRE(send_packet(ports, *ports.a, ports.b->facts().self, packet_of(100, 1)));
  ports.a->abandon();
  ports.a.reset();
  CHECK(path.read().packets.size() == 10);
  CHECK_FALSE(path.read().ended);
}

TEST_CASE("a child of fork does not change its parent's capture") {
  const CapturePath path("fork");
  {
    PortPair ports(path.device("udp:"), "udp:");
    REQUIRE(send_packet(ports, *ports.a, ports.b->facts().self, packet_of(100, 1)));
    const pid_t child = fork();
    if (child == 0) {
      ports.a.reset();
      _exit(0);
    }
    int status = -1;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
    CHECK_FALSE(path.read().ended);
    REQUIRE(send_packet(ports, *ports.a, ports.b->facts().self, packet_of(100, 2)));
  }
  CHECK(path.read().packets.size() == 2);
  CHECK(path.read().ended);
}

// ---- captures that cannot be written

std::string why_not(const std::string& device, Status status) {
  INFO(device);
  const auto parsed = drivers::parse_device_string(device);
  REQUIRE(parsed.ok());
  const auto port = drivers::open_port(*parsed);
  REQUIRE_FALSE(port.ok());
  CHECK(port.status() == status);
  CHECK(mentions(port.error().message, "Fix: "));
  return port.error().message;
}

TEST_CASE("only its owner can read a capture, even if the file was readable to all before") {
  const CapturePath there("open to all");
  std::ofstream(there.path) << "\n\r\r\nof before";
  REQUIRE(chmod(there.path.c_str(), 0666) == 0);
  const auto parsed =
      drivers::parse_device_string("pcap(file=" + there.path + "):sim:capture-mode");
  REQUIRE(drivers::open_port(parsed.value()).ok());
  struct stat about {};
  REQUIRE(stat(there.path.c_str(), &about) == 0);
  CHECK((about.st_mode & 0777) == 0600);
}

TEST_CASE("the error for a capture that cannot be opened says why, and what to do") {
  constexpr Status bad = Status::invalid_argument;
  CHECK(mentions(why_not("pcap:", bad), "wraps another device"));
  CHECK(mentions(why_not("pcap():sim:x", bad), "is missing. Fix: pcap(file="));
  CHECK(mentions(why_not("pcap(snap=100):sim:x", bad), "is missing"));
  CHECK(mentions(why_not("pcap(file=/tmp/x,snap=1):sim:x", bad), "the value of snap"));
  CHECK(mentions(why_not("pcap(file=/tmp/x,limit=1):sim:x", bad), "the value of limit"));
  CHECK(mentions(why_not("pcap(file=/tmp/x,colour=red):sim:x", bad), "file, snap, limit"));
  CHECK(mentions(why_not("pcap(file=/no/such/x):sim:x", Status::io_error), "/no/such/x cannot be"));
  CHECK(mentions(why_not("pcap(file=/tmp):sim:x", bad), "/tmp is not a regular file"));
  CHECK(mentions(why_not("pcap(file=/dev/full):sim:x", Status::no_resources),
                 "/dev/full cannot be written: No space left"));
  const CapturePath fifo("fifo");
  REQUIRE(mkfifo(fifo.path.c_str(), 0600) == 0);
  CHECK(mentions(why_not(fifo.device("sim:x"), bad), "is not a regular file"));
  const int reader = ::open(fifo.path.c_str(), O_RDONLY | O_NONBLOCK);
  CHECK(mentions(why_not(fifo.device("sim:x"), bad), "is not a regular file"));
  close(reader);
  // An existing file is not changed if the device itself cannot be opened.
  const CapturePath kept("kept");
  std::ofstream(kept.path) << "an older capture";
  why_not(kept.device("udp:192.0.2.1"), Status::invalid_argument);
  std::string line;
  std::getline(std::ifstream(kept.path) >> std::ws, line);
  CHECK(line == "an older capture");
}

TEST_CASE("an existing file is overwritten, but not while another device writes it") {
  const CapturePath path("again");
  std::ofstream(path.path) << "\n\r\r\n" << std::string(100'000, 'x');
  for (int round = 0; round < 2; ++round) {
    PortPair ports(path.device("sim:pcap-again"), "sim:pcap-again");
    REQUIRE(send_packet(ports, *ports.a, ports.b->facts().self, packet_of(100, 1)));
    CHECK(mentions(why_not(path.device("sim:pcap-again"), Status::invalid_argument),
                   "being written by another device"));
    const std::string twice = path.device(path.device("sim:pcap-again"));
    CHECK(mentions(why_not(twice, Status::invalid_argument), "another device"));
    ports.a.reset();
    CHECK(path.read().packets.size() == 1);
    CHECK(path.read().ended);
  }
}

// Sends this many packets of 1000 bytes, a tenth of them at a time.
void send_many(PortPair& ports, unsigned count) {
  for (unsigned i = 0; i < count; ++i) {
    REQUIRE(send_packet(ports, *ports.a, ports.b->facts().self, packet_of(1000, i)));
    if (i % (count / 10) == 0) ports.a->receive({}, ports.now() + 1s);
    if (i % 50 == 0) receive_packets(ports, *ports.b, 50);
  }
  ports.a->receive({}, ports.now() + 1s);
}

void check_stopped(const Capture& capture, size_t sent, const std::string& why) {
  CHECK(capture.ended);
  CHECK(mentions(capture.comment, "capture stopped: " + why));
  CHECK(capture.seen == sent);
  CHECK(capture.missing > 0);
  CHECK(capture.packets.size() + capture.missing == sent);
  for (const Captured& one : capture.packets) CHECK(one.bytes.size() == 1048);
}

TEST_CASE("a capture stops at its limit, and counts the packets beyond it") {
  for (const uint64_t limit : {4096, 65'537, 300'000, 300'001, 300'002, 300'003}) {
    INFO(limit);
    const CapturePath path("limit");
    {
      PortPair ports(path.device("sim:pcap-limit", ",limit=" + std::to_string(limit)),
                     "sim:pcap-limit");
      send_many(ports, 500);
      CHECK(ports.a->counters().uncaptured > 0);
      CHECK(path.read().ended);
    }
    struct stat about {};
    REQUIRE(stat(path.path.c_str(), &about) == 0);
    CHECK(static_cast<uint64_t>(about.st_size) <= limit);
    CHECK(static_cast<uint64_t>(about.st_size) > limit - 1500);
    check_stopped(path.read(), 500, "the file's limit was reached");
  }
}

TEST_CASE("a file that cannot grow is cut to its last whole packet, and the settings say so") {
  // The file is in memory and may not grow beyond `room` bytes. As on a full disk, a write ends
  // there early.
  for (const off_t room : {8192, 100'000, 123'456, 400'000}) {
    INFO(room);
    const int memory = memfd_create("full", MFD_ALLOW_SEALING | MFD_CLOEXEC);
    const std::string path = "/proc/self/fd/" + std::to_string(memory);
    {
      PortPair ports("pcap(file=" + path + "):sim:pcap-full", "sim:pcap-full");
      REQUIRE(ftruncate(memory, room) == 0);
      REQUIRE(fcntl(memory, F_ADD_SEALS, F_SEAL_GROW) == 0);
      send_many(ports, 500);
      CHECK(ports.a->counters().uncaptured > 0);
      check_stopped(read_capture(path), read_capture(path).seen, "Operation not permitted");
    }
    const Capture capture = read_capture(path);
    check_stopped(capture, 500, "Operation not permitted");
    // Short writes end at a page.
    CHECK(capture.packets.size() + 5 >= static_cast<size_t>(room / 4096 * 4096) / 1092);
    close(memory);
  }
}

TEST_CASE("a capture that reaches the limit on file sizes does not kill the process") {
  const CapturePath path("rlimit");
  const pid_t child = fork();
  if (child == 0) {
    const rlimit most{50'000, 50'000};
    if (setrlimit(RLIMIT_FSIZE, &most) != 0) _exit(1);
    {
      PortPair ports(path.device("sim:pcap-rlimit"), "sim:pcap-rlimit");
      send_many(ports, 500);
      if (ports.a->counters().uncaptured == 0) _exit(2);
    }
    _exit(0);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  check_stopped(path.read(), 500, "File too large");
}

}  // namespace
}  // namespace urma::test
