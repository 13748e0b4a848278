// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace urma {

// The kinds of atomics: how each changes a word of memory (UB 5.4). The values are those on the
// wire.
enum class Atomic : uint8_t {
  compare_swap = 0x07,  // stores the operand, if the word equals the expected value
  swap = 0x08,          // stores the operand
  store = 0x09,         // applies an Update
  load = 0x0a,          // applies an Update, and fetches the previous value
  fetch_add = 0x0b,     // word + operand
  fetch_sub = 0x0c,     // word - operand
  fetch_and = 0x0d,     // word & operand
  fetch_or = 0x0e,      // word | operand
  fetch_xor = 0x0f,     // word ^ operand
};
// The first and the last value of the enumeration.
inline constexpr Atomic first_atomic = Atomic::compare_swap;
inline constexpr Atomic last_atomic = Atomic::fetch_xor;

// How Atomic::store and Atomic::load change the word (UB 5.3, UDETAH). The values are those on the
// wire.
enum class Update : uint8_t {
  add,           // word + operand, modulo the word's width
  clear,         // word & ~operand: the operand's bits become 0
  exclusive_or,  // word ^ operand
  set,           // word | operand: the operand's bits become 1
  signed_max,    // the larger of word and operand, both as two's complement
  signed_min,    // the smaller of word and operand, both as two's complement
  unsigned_max,  // the larger of word and operand, both as unsigned integers
  unsigned_min,  // the smaller of word and operand, both as unsigned integers
};
// The last value of the enumeration.
inline constexpr Update last_update = Update::unsigned_min;

// Atomics change words of 1, 2, 4 or 8 bytes. UB also defines 16, 32 and 64 bytes, for which not
// all processors have an instruction; works with them complete as `unsupported`.
inline constexpr uint64_t most_atomic_bytes = 8;
inline constexpr uint64_t most_atomic_bytes_of_ub = 64;

}  // namespace urma
