// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "base/crc32.h"

namespace urma::apps::notify {

// A file is sent in blocks, each written to one of the slots of the receiver's staging memory.
inline constexpr uint32_t block_bytes = 256 * 1024;
inline constexpr uint32_t slots = 8;

// Precedes each block in its slot. Its numbers have the byte order of the processor. A block that
// lies in a hole of the file has a head alone, with 0 bytes.
struct BlockHead {
  uint64_t number;
  uint32_t bytes;
  uint32_t check;
};
static_assert(sizeof(BlockHead) == 16);
inline constexpr uint32_t slot_bytes = 64 + block_bytes;  // a block begins at a cache line

inline uint64_t blocks_of(uint64_t file_bytes) {
  return file_bytes / block_bytes + (file_bytes % block_bytes != 0);
}
inline uint32_t bytes_of_block(uint64_t file_bytes, uint64_t number) {
  const uint64_t left = file_bytes - number * block_bytes;
  return left < block_bytes ? static_cast<uint32_t>(left) : block_bytes;
}

inline uint32_t check_of(std::span<const std::byte> bytes) {
  return crc32_finish(crc32_update(crc32_start, bytes.data(), bytes.size()));
}

// The immediate of a block's write, and of the message that returns its slot.
inline uint64_t immediate_of(uint32_t transfer, uint64_t block) {
  return uint64_t{transfer} << 32 | block;
}
inline uint32_t transfer_in(uint64_t immediate) { return static_cast<uint32_t>(immediate >> 32); }
inline uint32_t block_in(uint64_t immediate) { return static_cast<uint32_t>(immediate); }
inline constexpr uint64_t most_blocks = uint64_t{1} << 32;
// This immediate is not that of a block: the receiver asks whether the sender still runs.
inline constexpr uint64_t are_you_there = UINT64_MAX;

}  // namespace urma::apps::notify
