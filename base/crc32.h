// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace urma {

// CRC-32 as Ethernet and UB's ICRC use it (UB 3.3): polynomial 0x04C11DB7, bits reflected, initial
// value all ones, inverted at the end. It can be computed in pieces: each call continues from the
// result of the previous one. `crc32_finish` returns the final number, which is sent least
// significant byte first.
inline constexpr uint32_t crc32_start = 0xffffffff;
constexpr uint32_t crc32_finish(uint32_t crc) { return ~crc; }

// The implementation is chosen once by what the processor can do: carry-less multiplication, else
// tables.
uint32_t crc32_update(uint32_t crc, const void* data, size_t bytes);

// The implementations by name, for tests that compare them.
uint32_t crc32_portable(uint32_t crc, const void* data, size_t bytes);
struct Crc32Implementation {
  const char* name;
  uint32_t (*update)(uint32_t, const void*, size_t);
};
// Returns those that this processor can run; the last one is the one in use.
std::span<const Crc32Implementation> crc32_implementations();

}  // namespace urma
