#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "urma/core/time.h"

namespace urma::drivers::pcap {

// The blocks of a pcapng file (draft-ietf-opsawg-pcapng), in this machine's byte order, which the
// file's first block tells. Each says its own length at both of its ends.

// As the flags of a packet's block say it.
enum class Direction : uint32_t { in = 1, out = 2 };

// What is in front of a packet's bytes in its block, and behind them at most.
inline constexpr size_t packet_head_bytes = 28;
inline constexpr size_t packet_tail_bytes = 3 + 12 + 4;
// No block of statistics is longer.
inline constexpr size_t most_statistics_bytes = 160;
// Nor the two blocks that a file begins with.
inline constexpr size_t most_beginning_bytes = 2048;

// Of where packets come from. Texts that are too long are cut off.
struct Interface {
  std::string_view name;
  std::string_view description;
  uint32_t snap_bytes = 0;  // 0: whole packets
};
// The file's beginning: packets are IP packets without anything in front, their times nanoseconds.
size_t put_beginning(std::byte* out, const Interface& interface);

struct PacketBlock {
  Direction direction;
  Duration since_1970;
  uint32_t bytes;       // that it had
  uint32_t kept_bytes;  // that lie behind the head's room already
};
// Around a packet, whose bytes stand at `out + packet_head_bytes`. All put_ return a block's bytes.
size_t put_packet(std::byte* out, const PacketBlock& packet);

struct Statistics {
  Duration since_1970;
  uint64_t seen = 0;
  uint64_t missing = 0;      // of these
  std::string_view comment;  // why some are, if not empty
};
size_t put_statistics(std::byte* out, const Statistics& statistics);

// The length that a block says of itself.
uint32_t block_bytes(const std::byte* block);

}  // namespace urma::drivers::pcap
