// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

namespace urma::test {

// Returns bytes in which neighbours differ and blocks of 256 differ. Those of two seeds differ,
// too.
inline std::vector<std::byte> bytes_like(size_t count, unsigned seed = 1) {
  std::vector<std::byte> bytes(count);
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 256 + seed);
  return bytes;
}

// Returns whether both have the same length and the same bytes.
inline bool same(std::span<const std::byte> a, std::span<const std::byte> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

// Returns whether each byte has the value. There must be at least one.
inline bool all_are(std::span<const std::byte> bytes, std::byte value) {
  return bytes[0] == value && std::memcmp(&bytes[0], &bytes[1], bytes.size() - 1) == 0;
}

}  // namespace urma::test
