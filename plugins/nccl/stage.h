// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

namespace urma::nccl {

// Gives away parts of a ring of bytes, oldest first: the memory into which peers copy data that the
// receiver then copies to its place. It knows only offsets. Used by one thread.
class Stage {
 public:
  explicit Stage(uint64_t bytes) : bytes_(bytes) {}

  uint64_t bytes() const { return bytes_; }
  // Returns the offset of a part, or nothing if there is no room now.
  std::optional<uint64_t> take(uint64_t bytes) {
    const uint64_t rounded = (bytes + line - 1) / line * line;
    if (rounded > bytes_) return std::nullopt;
    uint64_t begin = end_;
    // A part does not go around the end of the ring.
    if (begin % bytes_ + rounded > bytes_) begin += bytes_ - begin % bytes_;
    if (begin + rounded - begin_ > bytes_) return std::nullopt;
    end_ = begin + rounded;
    return begin % bytes_;
  }
  // Returns the mark behind all parts that were given away so far.
  uint64_t mark() const { return end_; }
  // Takes back all parts before this mark.
  void release(uint64_t mark) { begin_ = mark; }

 private:
  static constexpr uint64_t line = 64;  // so that two parts have no cache line in common

  const uint64_t bytes_;
  uint64_t begin_ = 0;  // these two never go back
  uint64_t end_ = 0;
};

}  // namespace urma::nccl
