// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/region.h"

namespace urma::drivers::udp {

// The buffers that the kernel fills, in one region, and which of them are free. The port owns it.
class Buffers {
 public:
  static constexpr uint32_t count = 128;
  // The most bytes that the kernel delivers at once, to a socket that coalesces datagrams.
  static constexpr uint32_t data_bytes = 65536;

  // Each buffer has room for `prefix` bytes in front of the data.
  explicit Buffers(uint32_t prefix)
      : bytes_each_(prefix + data_bytes), storage_(size_t{count} * bytes_each_) {
    for (uint32_t i = count; i-- > 0;) give_back(i);
  }

  uint32_t free() const { return free_count_; }
  uint32_t bytes_each() const { return bytes_each_; }
  std::byte* at(uint32_t buffer) const { return storage_.data() + size_t{buffer} * bytes_each_; }
  // Returns the buffer that `take` would take after `skipped` others.
  uint32_t next(uint32_t skipped) const { return free_[free_count_ - 1 - skipped]; }
  uint32_t take() { return free_[--free_count_]; }
  void give_back(uint32_t buffer) { free_[free_count_++] = buffer; }
  bool use_huge_pages() const { return storage_.use_huge_pages(); }

 private:
  uint32_t bytes_each_;
  Region storage_;
  std::array<uint32_t, count> free_;
  uint32_t free_count_ = 0;
};

}  // namespace urma::drivers::udp
