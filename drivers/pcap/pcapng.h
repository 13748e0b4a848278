// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "urma/core/time.h"

namespace urma::drivers::pcap {

// The blocks of a pcapng file (draft-ietf-opsawg-pcapng), in the byte order of this machine, which
// the first block states. Each block has its length at both ends.

// The values of the direction in the flags of a packet block.
enum class Direction : uint32_t { in = 1, out = 2 };

// The bytes in front of a packet in its block, and the most bytes behind it.
inline constexpr size_t packet_head_bytes = 28;
inline constexpr size_t packet_tail_bytes = 3 + 12 + 4;
// The longest block of statistics.
inline constexpr size_t most_statistics_bytes = 160;
// The most bytes of the two blocks at the beginning of a file.
inline constexpr size_t most_beginning_bytes = 2048;

// The interface of the packets. Texts that are too long are truncated.
struct Interface {
  std::string_view name;
  std::string_view description;
  uint32_t snap_bytes = 0;  // 0: whole packets
};
// Writes the beginning of a file of IP packets without link-layer headers, with times in
// nanoseconds. This and the next two functions return the number of bytes of the block.
size_t put_beginning(std::byte* out, const Interface& interface);

// One packet of a capture.
struct PacketBlock {
  Direction direction;
  Duration since_1970;
  uint32_t bytes;       // the length of the packet
  uint32_t kept_bytes;  // the bytes of it that are in the file
};
// Writes the block around a packet, whose kept bytes are at `out + packet_head_bytes` already.
size_t put_packet(std::byte* out, const PacketBlock& packet);

// How many packets a capture lacks, at its end.
struct Statistics {
  Duration since_1970;
  uint64_t seen = 0;
  uint64_t missing = 0;      // those of them that are not in the file
  std::string_view comment;  // why packets are missing, or empty
};
size_t put_statistics(std::byte* out, const Statistics& statistics);

// Returns the length of a block, from its header.
uint32_t block_bytes(const std::byte* block);

}  // namespace urma::drivers::pcap
