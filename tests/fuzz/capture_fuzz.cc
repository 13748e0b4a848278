// SPDX-License-Identifier: Apache-2.0
// Tests the reader of captures, which urma_notify --demo replays, on any bytes. Oracle: a packet
// has bytes, which the capture contains, behind those of the packet before it; more bytes behind a
// capture change nothing of what was read from it; and the name of any packet is short text.

#include <algorithm>
#include <string>
#include <string_view>

#include "apps/urma_notify/recording.h"
#include "tests/fuzz/input.h"

namespace urma::fuzz {
namespace {

using apps::notify::CapturedPacket;
using apps::notify::packet_name;
using apps::notify::parse_capture;

void check_name(const std::string& bytes) {
  const std::string name = packet_name(bytes);
  require(!name.empty() && name.size() <= 40, "the name of a packet is short");
  require(std::ranges::all_of(name, [](char c) { return c >= ' ' && c < '\x7f'; }),
          "the name of a packet is printable");
}

void check_inside(const std::vector<CapturedPacket>& packets, std::string_view capture) {
  for (const CapturedPacket& packet : packets) {
    require(!packet.bytes.empty(), "a packet has bytes");
    const size_t at = capture.find(packet.bytes);
    require(at != std::string_view::npos, "packets are parts of the capture, in order");
    // The trailer of its block follows.
    require(capture.size() - at >= packet.bytes.size() + 4, "a packet is inside its block");
    capture.remove_prefix(at + packet.bytes.size());
    check_name(packet.bytes);
  }
}

void check_prefix(const std::vector<CapturedPacket>& packets, const std::string& capture,
                  size_t length) {
  const auto some = parse_capture(capture.substr(0, length));
  require(some.size() <= packets.size(), "a part of a capture has no other packets");
  for (size_t i = 0; i < some.size(); ++i) {
    require(some[i].bytes == packets[i].bytes && some[i].outgoing == packets[i].outgoing &&
                some[i].nanoseconds == packets[i].nanoseconds,
            "a packet is the same, whatever follows it");
  }
}

}  // namespace
}  // namespace urma::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace urma::fuzz;
  const std::string capture(reinterpret_cast<const char*>(data), size);
  check_name(capture);
  const auto packets = urma::apps::notify::parse_capture(capture);
  check_inside(packets, capture);
  for (const size_t parts : {2, 3, 7}) check_prefix(packets, capture, size - size / parts);
  return 0;
}
