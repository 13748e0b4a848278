// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace urma::test {

inline std::string to_hex(std::span<const std::byte> bytes) {
  constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (const std::byte byte : bytes) {
    text += digits[static_cast<unsigned>(byte) >> 4];
    text += digits[static_cast<unsigned>(byte) & 15];
  }
  return text;
}

// Reads hexadecimal digits. Blanks between them are ignored. Throws at anything else.
inline std::vector<std::byte> from_hex(std::string_view text) {
  std::vector<std::byte> bytes;
  unsigned digits = 0, value = 0;
  for (const char c : text) {
    if (c == ' ') continue;
    const size_t digit = std::string_view("0123456789abcdef").find(c);
    if (digit == std::string_view::npos) throw std::invalid_argument("not hexadecimal");
    value = value << 4 | static_cast<unsigned>(digit);
    if (++digits % 2 == 0) bytes.push_back(static_cast<std::byte>(value));
  }
  if (digits % 2 != 0) throw std::invalid_argument("half a byte");
  return bytes;
}

}  // namespace urma::test
