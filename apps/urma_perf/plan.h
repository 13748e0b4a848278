// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <istream>
#include <string>
#include <vector>

#include "apps/urma_perf/case.h"

namespace urma::apps::perf {

// A block of a KV cache: where it lies in the memory of each side.
struct Block {
  uint64_t target = 0;  // offset at the server
  uint64_t source = 0;  // offset at the client
  uint64_t bytes = 0;
};

// The blocks that a transfer moves (test kv). A file describes them in lines:
//
//   BYTES COUNT             COUNT blocks of BYTES behind all blocks of the lines before: at the
//                           server in the reverse order, so that no block continues another one
//   TARGET SOURCE BYTES     one block, and its offsets at the server and at the client
//
// Numbers are decimal, and may end in K, M or G (2^10, 2^20, 2^30). # begins a comment.
class Plan {
 public:
  static constexpr uint64_t usual_bytes = 1'179'648;  // a block of DeepSeek-R1: docs/nixl.md
  static constexpr uint32_t usual_blocks = 298;
  static constexpr uint32_t most_blocks = most_depth;  // each may be a work of one post
  static constexpr uint32_t most_entries = 1024;       // of a scatter list
  static constexpr uint64_t most_file_bytes = 1 << 20;
  // The check of the bytes begins at whole words of the pattern.
  static constexpr uint64_t source_alignment = 8;

  // Returns the plan of a file with one line, BYTES COUNT.
  static Plan of(uint64_t bytes, uint32_t count);
  // Reads a file. Throws a Failure (usage) that names the line, and what is wrong with it.
  static Plan read(const std::string& path);
  // The same for a stream; `name` names it in errors.
  static Plan parse(std::istream& in, const std::string& name);

  const std::vector<Block>& blocks() const { return blocks_; }
  uint64_t bytes() const;  // of all blocks

  // Returns the blocks as scatter lists move them: in the order of their offsets at the server,
  // where they follow each other without a gap, because a work gathers into one range.
  Plan gathered() const;
  // Returns what both sides must know of it if lists have so many entries; 0: a work for each
  // block.
  PlanShape shape(uint32_t entries) const;

 private:
  std::vector<Block> blocks_;
};

// A part of a scatter list that one work moves: blocks [begin, end).
struct Gather {
  size_t begin = 0;
  size_t end = 0;
};
// Returns the works of each list of so many blocks: a work gathers as many of them as it can.
// Without lists (0) there is one, in which each block is a work.
std::vector<std::vector<Gather>> lists_of(const std::vector<Block>& blocks, uint32_t entries);
// Returns how many works one write of so many bytes takes: one, up to max_write_bytes.
constexpr uint32_t works_of_one_write(uint64_t bytes) {
  return static_cast<uint32_t>((bytes + max_write_bytes - 1) / max_write_bytes);
}

}  // namespace urma::apps::perf
