// SPDX-License-Identifier: Apache-2.0
// Frames that no host of liburma sends: runts, frames that are too large, mutated ones and wrong
// checksums, as a port of DPDK receives them. A port of net_pcap receives what a file contains.

#include <fstream>

#include "base/prng.h"
#include "drivers/dpdk/envelope.h"
#include "tests/catch.h"
#include "tests/dpdk/dpdk_ports.h"
#include "tests/temporary_directory.h"

namespace urma::test {
namespace {

using namespace drivers::dpdk;
using FrameBytes = std::vector<std::byte>;

void write_capture(const std::string& path, const std::vector<FrameBytes>& frames) {
  std::ofstream out(path, std::ios::binary);
  const auto put = [&](std::initializer_list<uint32_t> words) {
    for (const uint32_t word : words) {
      out.write(reinterpret_cast<const char*>(&word), sizeof word);
    }
  };
  put({0xa1b2c3d4, 4u << 16 | 2, 0, 0, 65535, 1});  // version 2.4, Ethernet
  for (const FrameBytes& frame : frames) {
    const auto bytes = static_cast<uint32_t>(frame.size());
    put({0, 0, bytes, bytes});
    out.write(reinterpret_cast<const char*>(frame.data()), bytes);
  }
}

// A port of net_pcap that has received all frames of a file, and what it made of them.
struct Replay {
  const TemporaryDirectory folder{"/tmp/urma-test-XXXXXX"};
  const std::string file = folder.path() / "frames";
  const bool six;
  const Mac mac = next_mac();
  uint64_t malformed = 0;  // of the frames of `receive`

  explicit Replay(bool ipv6) : six(ipv6) {}

  std::unique_ptr<drivers::PacketPort> open(const std::string& ip) const {
    return PortPair::open("dpdk:net_pcap0,rx_pcap=" + file + ip);
  }
  // Each port of net_pcap in a process has the MAC address behind that of the previous one. The
  // address that a port derives from its own tells that one.
  Mac next_mac() const {
    write_capture(file, {});
    const Eid derived = open("")->facts().self.address;
    Mac out;
    std::copy_n(derived.bytes.begin() + 8, 3, out.begin());
    out[0] ^= std::byte{2};
    std::copy_n(derived.bytes.begin() + 13, 3, out.begin() + 3);
    out[5] = static_cast<std::byte>(std::to_integer<unsigned>(out[5]) + 1);
    return out;
  }
  Eid address(unsigned host) const {
    return six ? parse_address("fd00::" + std::to_string(host)).value()
               : ipv4(10, 9, 0, static_cast<uint8_t>(host));
  }
  // Returns a frame from another host to the port with this packet.
  FrameBytes frame_with(const Packet& packet) const {
    const Envelope envelope({.to = mac,
                             .from = {std::byte{2}, {}, {}, {}, {}, std::byte{9}},
                             .type = six ? EtherType::ipv6 : EtherType::ipv4},
                            {.from = address(9), .to = address(1)},
                            {.from = ub_port, .to = ub_port}, false);
    FrameBytes frame(most_header_bytes);
    frame.insert(frame.end(), packet.begin(), packet.end());
    envelope.put(std::span(frame).subspan(most_header_bytes), {});
    const size_t header_bytes = ethernet_bytes + (six ? ipv6_bytes : ipv4_bytes) + udp_bytes;
    frame.erase(frame.begin(), frame.end() - static_cast<ptrdiff_t>(header_bytes + packet.size()));
    return frame;
  }
  // Lets a port receive the frames. Returns the packets that it reports.
  std::vector<Packet> receive(const std::vector<FrameBytes>& frames) {
    write_capture(file, frames);
    const auto port = open("?ip=" + to_string(address(1)) + (six ? "/64" : "/24"));
    std::vector<Packet> packets;
    for (size_t looks = 0; looks <= frames.size(); ++looks) {
      RxFrame frame;
      if (port->receive({&frame, 1}, read_clock()) == 0) continue;
      packets.emplace_back(frame.data, frame.data + frame.bytes);
      port->release({&frame, 1});
    }
    malformed = port->counters().malformed;
    return packets;
  }
};

TEST_CASE("runts and frames that are too large are counted, and the port goes on") {
  for (const bool six : {false, true}) {
    Replay replay(six);
    const Packet packet = packet_of(200, 1);
    const FrameBytes whole = replay.frame_with(packet);
    std::vector<FrameBytes> frames{whole};
    for (size_t bytes = 0; bytes < whole.size(); ++bytes) {
      frames.emplace_back(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(bytes));
    }
    const uint64_t runts = whole.size();
    constexpr size_t too_large[] = {2200, 4000, 9000, 30'000, 65'000};
    for (const size_t bytes : too_large) frames.push_back(replay.frame_with(packet_of(bytes, 2)));
    frames.push_back(whole);
    CHECK((replay.receive(frames) == std::vector<Packet>{packet, packet}));
    CHECK(replay.malformed == runts + std::size(too_large));
    CHECK(lost_buffers() == 0);
  }
}

TEST_CASE("a frame with a wrong byte is dropped, or its packet is as it was sent") {
  for (const bool six : {false, true}) {
    Replay replay(six);
    const Packet packet = packet_of(100, 1);
    const FrameBytes whole = replay.frame_with(packet);
    const size_t headers = whole.size() - packet.size();
    std::vector<FrameBytes> frames;
    for (size_t at = 0; at < headers; ++at) {
      for (const unsigned change : {1u, 0x80u, 0xffu}) {
        frames.push_back(whole);
        frames.back()[at] ^= static_cast<std::byte>(change);
      }
    }
    frames.push_back(whole);
    const std::vector<Packet> received = replay.receive(frames);
    REQUIRE_FALSE(received.empty());
    CHECK(received.size() < frames.size() / 2);
    for (const Packet& one : received) CHECK(one == packet);
    CHECK(replay.malformed > frames.size() / 4);
    CHECK(lost_buffers() == 0);
  }
}

TEST_CASE("packets with a wrong checksum of IPv4, or of UDP over IPv6, do not arrive") {
  for (const bool six : {false, true}) {
    Replay replay(six);
    const Packet packet = packet_of(100, 1);
    FrameBytes wrong = replay.frame_with(packet);
    wrong[six ? wrong.size() - 1 : drivers::dpdk::ethernet_bytes + 11] ^= std::byte{4};
    CHECK(
        (replay.receive({wrong, replay.frame_with(packet), wrong}) == std::vector<Packet>{packet}));
    CHECK(replay.malformed == 2);
  }
}

TEST_CASE("thousands of frames of any bytes do no harm") {
  Prng prng(7);
  Replay replay(false);
  std::vector<FrameBytes> frames;
  for (unsigned i = 0; i < 5000; ++i) {
    FrameBytes frame = replay.frame_with(packet_of(prng.below(1400), i));
    frame.resize(prng.below(frame.size()));
    for (uint64_t changes = prng.below(40); changes > 0 && !frame.empty(); --changes) {
      frame[prng.below(frame.size())] = static_cast<std::byte>(prng.next());
    }
    frames.push_back(std::move(frame));
  }
  const Packet packet = packet_of(100, 1);
  frames.push_back(replay.frame_with(packet));
  const std::vector<Packet> received = replay.receive(frames);
  REQUIRE_FALSE(received.empty());
  CHECK(received.back() == packet);
  CHECK(lost_buffers() == 0);
}

}  // namespace
}  // namespace urma::test
