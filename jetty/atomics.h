// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "urma/core/atomic.h"

namespace urma::jetty {

// One atomic operation to be executed. The values are the host's integers; for shorter words their
// upper bytes are ignored.
struct AtomicCall {
  Atomic what{};
  Update update{};
  uint32_t bytes = 0;  // 1, 2, 4, 8
  uint64_t operand = 0;
  uint64_t expected = 0;
};

// Returns whether there is an atomic of this kind with this update.
constexpr bool is_atomic(Atomic what, Update update) {
  return what >= first_atomic && what <= last_atomic && update <= last_update;
}
constexpr bool is_atomic_width(uint64_t bytes) {
  return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
}
constexpr uint32_t operands_of(Atomic what) { return what == Atomic::compare_swap ? 2 : 1; }

// Executes an atomic with this processor's instructions on the aligned word at `word`, which other
// threads and processes may change in the same way. Returns the word's previous value. The
// operation is sequentially consistent.
uint64_t execute(const AtomicCall& call, std::byte* word);
// Stores a word of 1, 2, 4 or 8 bytes: by one store (release), if it is aligned.
void store_word(std::byte* to, uint32_t bytes, uint64_t value);

// Operands and results are little endian on the wire (docs/protocol.md).
inline void put_little(uint64_t value, std::span<std::byte> out) {
  for (std::byte& byte : out) {
    byte = static_cast<std::byte>(value);
    value >>= 8;
  }
}
inline uint64_t get_little(std::span<const std::byte> in) {
  uint64_t value = 0;
  for (size_t i = in.size(); i > 0; --i) value = value << 8 | static_cast<uint8_t>(in[i - 1]);
  return value;
}

}  // namespace urma::jetty
