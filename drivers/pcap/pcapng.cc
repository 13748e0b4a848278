// SPDX-License-Identifier: Apache-2.0
#include "drivers/pcap/pcapng.h"

#include <algorithm>
#include <cstring>

namespace urma::drivers::pcap {
namespace {

enum Type : uint32_t {
  section = 0x0a0d0d0a,
  interface_description = 1,
  interface_statistics = 5,
  enhanced_packet = 6,
};

// The numbers of options, which depend on the type of the block. The first two are common to all.
enum Option : uint16_t {
  end_of_options = 0,
  comment = 1,
  section_application = 4,
  interface_name = 2,
  interface_text = 3,
  interface_resolution = 9,
  packet_flags = 2,
  statistics_received = 4,
  statistics_dropped = 5,
};

constexpr uint32_t byte_order = 0x1a2b3c4d;
constexpr uint16_t raw_ip = 101;  // LINKTYPE_RAW
constexpr uint8_t nanoseconds = 9;
constexpr size_t longest_text = 512;
constexpr size_t longest_comment = 64;

// Writes a block.
class Block {
 public:
  Block(std::byte* begin, Type type) : begin_(begin), at_(begin) {
    put(uint32_t{type});
    put(uint32_t{0});  // the length, which `end` fills in
  }

  template <class Number>
  void put(Number number) {
    std::memcpy(at_, &number, sizeof number);
    at_ += sizeof number;
  }
  // The high half comes first in each byte order.
  void put_time(Duration since_1970) {
    const auto number = static_cast<uint64_t>(since_1970.count());
    put(static_cast<uint32_t>(number >> 32));
    put(static_cast<uint32_t>(number));
  }
  void skip(size_t bytes) { at_ += bytes; }
  void pad() {
    while ((at_ - begin_) % 4 != 0) *at_++ = std::byte{0};
  }
  void option(Option code, const void* data, size_t bytes) {
    put(uint16_t{code});
    put(static_cast<uint16_t>(bytes));
    if (bytes > 0) std::memcpy(at_, data, bytes);
    at_ += bytes;
    pad();
  }
  void text(Option code, std::string_view text, size_t longest) {
    if (!text.empty()) option(code, text.data(), std::min(text.size(), longest));
  }
  size_t end() {
    option(end_of_options, nullptr, 0);
    const auto bytes = static_cast<uint32_t>(at_ - begin_ + 4);
    put(bytes);
    std::memcpy(begin_ + 4, &bytes, sizeof bytes);
    return bytes;
  }

 private:
  std::byte* begin_;
  std::byte* at_;
};

}  // namespace

size_t put_beginning(std::byte* out, const Interface& interface) {
  Block head(out, section);
  head.put(byte_order);
  head.put(uint16_t{1});  // version 1.0
  head.put(uint16_t{0});
  head.put(~uint64_t{0});  // of unknown length
  head.text(section_application, "liburma", longest_text);
  const size_t bytes = head.end();

  Block about(out + bytes, interface_description);
  about.put(raw_ip);
  about.put(uint16_t{0});
  about.put(interface.snap_bytes);
  about.text(interface_name, interface.name, longest_text);
  about.text(interface_text, interface.description, longest_text);
  about.option(interface_resolution, &nanoseconds, 1);
  return bytes + about.end();
}

size_t put_packet(std::byte* out, const PacketBlock& packet) {
  Block block(out, enhanced_packet);
  block.put(uint32_t{0});  // the only interface
  block.put_time(packet.since_1970);
  block.put(packet.kept_bytes);
  block.put(packet.bytes);
  block.skip(packet.kept_bytes);
  block.pad();
  block.option(packet_flags, &packet.direction, sizeof packet.direction);
  return block.end();
}

size_t put_statistics(std::byte* out, const Statistics& statistics) {
  Block block(out, interface_statistics);
  block.put(uint32_t{0});
  block.put_time(statistics.since_1970);
  block.text(comment, statistics.comment, longest_comment);
  block.option(statistics_received, &statistics.seen, sizeof statistics.seen);
  block.option(statistics_dropped, &statistics.missing, sizeof statistics.missing);
  return block.end();
}

uint32_t block_bytes(const std::byte* block) {
  uint32_t bytes;
  std::memcpy(&bytes, block + 4, sizeof bytes);
  return bytes;
}

}  // namespace urma::drivers::pcap
