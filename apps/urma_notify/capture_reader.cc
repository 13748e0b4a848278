// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string_view>

#include "apps/urma_notify/recording.h"

namespace urma::apps::notify {
namespace {

template <class Word>
Word word_at(std::string_view bytes, size_t at) {
  Word word{};
  if (at + sizeof word <= bytes.size()) std::memcpy(&word, bytes.data() + at, sizeof word);
  return word;
}

unsigned byte_at(std::string_view bytes, size_t at) {
  return at < bytes.size() ? static_cast<unsigned char>(bytes[at]) : 0;
}

// Returns what is behind the headers of IPv4 and UDP; empty if these are not there.
std::string_view behind_udp(std::string_view packet) {
  constexpr unsigned udp = 17;
  constexpr size_t udp_bytes = 8;
  if (byte_at(packet, 0) >> 4 != 4 || byte_at(packet, 9) != udp) return {};
  const size_t head = (byte_at(packet, 0) & 15) * 4 + udp_bytes;
  return packet.substr(std::min(head, packet.size()));
}

// The transaction's part of a data packet: docs/protocol.md, sections 2 and 3.
std::string_view transaction_name(std::string_view bytes) {
  constexpr size_t transaction = 16;
  switch (byte_at(bytes, transaction)) {
    case 0x00:
      return "Send";
    case 0x03:
      return "Write";
    case 0x04:
      return "Write_imm";
    case 0x11:
      return "TAACK";
    default:
      return "data";
  }
}

}  // namespace

std::vector<CapturedPacket> read_capture(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return parse_capture({std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()});
}

std::vector<CapturedPacket> parse_capture(const std::string& all) {
  constexpr uint32_t enhanced_packet = 6;
  constexpr size_t head = 28, least = 32;
  std::vector<CapturedPacket> packets;
  for (size_t at = 0; at + 12 <= all.size();) {
    const auto type = word_at<uint32_t>(all, at);
    const auto bytes = word_at<uint32_t>(all, at + 4);
    if (bytes < 12 || bytes % 4 != 0 || bytes > all.size() - at) break;
    const std::string_view block = std::string_view(all).substr(at, bytes);
    at += bytes;
    const auto kept = word_at<uint32_t>(block, 20);
    if (type != enhanced_packet || bytes < least || kept > bytes - least) continue;
    // The writer puts the flags first; 2 is outgoing.
    const auto flags = word_at<uint32_t>(block, head + ((kept + 3) & ~3U) + 4);
    const std::string_view inside = behind_udp(block.substr(head, kept));
    if (inside.empty()) continue;
    packets.push_back(
        {.nanoseconds = uint64_t{word_at<uint32_t>(block, 12)} << 32 | word_at<uint32_t>(block, 16),
         .outgoing = (flags & 3) == 2,
         .bytes = std::string(inside)});
  }
  return packets;
}

std::string packet_name(const std::string& bytes) {
  const unsigned opcode = byte_at(bytes, 0) & 0x7f;
  const unsigned number = byte_at(bytes, 9) << 16 | byte_at(bytes, 10) << 8 | byte_at(bytes, 11);
  const bool filler = (byte_at(bytes, 8) & 0x40) != 0;
  switch (opcode) {
    case 0:
      return "set-up";
    case 1:
      return fmt::format("{}, PSN {}", filler ? "filler" : transaction_name(bytes), number);
    case 2:
    case 3:
      return fmt::format("TPACK, PSN {}", number);
    case 5:
    case 6:
      return fmt::format("TPSACK, PSN {}", number);
    default:
      return "other";
  }
}

}  // namespace urma::apps::notify
