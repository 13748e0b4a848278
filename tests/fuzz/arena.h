// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstring>
#include <span>

#include "tests/fuzz/input.h"

namespace urma::fuzz {

// Memory that contains all that peers may touch, with a shadow of its expected content. Only ranges
// that were allowed to change may differ from the shadow, which then takes over their new bytes.
// The bytes between segments and buffers must never change.
class Arena {
 public:
  static constexpr size_t bytes = 256 * 1024;

  Arena() {
    // Created once, because a fuzzer makes many arenas.
    static const Memory pattern = [] {
      Memory memory;
      for (size_t i = 0; i < bytes; ++i) memory[i] = static_cast<std::byte>(i * 151 >> 3);
      return memory;
    }();
    memory_ = shadow_ = pattern;
  }

  std::span<std::byte> range(size_t at, size_t size) {
    return std::span(memory_).subspan(at, size);
  }
  bool holds(const std::byte* at, size_t size) const {
    return at >= memory_.data() && size <= bytes && at + size <= memory_.data() + bytes;
  }

  // Makes the present bytes of this range the expected ones.
  void allow(std::span<const std::byte> range) {
    const auto at = static_cast<size_t>(range.data() - memory_.data());
    std::memcpy(shadow_.data() + at, range.data(), range.size());
  }
  void check() const {
    require(std::memcmp(memory_.data(), shadow_.data(), bytes) == 0,
            "no byte changes outside the allowed ranges");
  }

 private:
  using Memory = std::array<std::byte, bytes>;

  Memory memory_;
  Memory shadow_;
};

}  // namespace urma::fuzz
