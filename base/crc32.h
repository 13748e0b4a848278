#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace urma {

// CRC-32 as Ethernet and UB's ICRC use it (UB 3.3): polynomial 0x04C11DB7, bits reflected, starting
// from all ones, inverted at the end. In pieces: what one call returns, the next one continues;
// `crc32_finish` gives the number that is sent, least significant byte first.
inline constexpr uint32_t crc32_start = 0xffffffff;
constexpr uint32_t crc32_finish(uint32_t crc) { return ~crc; }

// Chosen once from what the processor can do: carry-less multiplication, else tables.
uint32_t crc32_update(uint32_t crc, const void* data, size_t bytes);

// The implementations by name, for tests that hold them against each other.
uint32_t crc32_portable(uint32_t crc, const void* data, size_t bytes);
struct Crc32Implementation {
  const char* name;
  uint32_t (*update)(uint32_t, const void*, size_t);
};
// Those that this processor can run; the last one is the one in use.
std::span<const Crc32Implementation> crc32_implementations();

}  // namespace urma
