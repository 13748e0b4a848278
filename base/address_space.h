// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace urma {

// Returns false if no process can have these bytes in its memory: they begin at null, wrap around,
// or reach into the upper half of the address space, which is the kernel's. Does not check whether
// something is mapped there. Returns true for 0 bytes.
inline bool could_be_memory(const void* data, uint64_t bytes) {
  constexpr uint64_t end = uint64_t{1} << 63;
  const uint64_t address = reinterpret_cast<uintptr_t>(data);
  // Null becomes the highest number.
  return bytes == 0 || (bytes <= end && address - 1 < end - bytes);
}

}  // namespace urma
