// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace urma::apps::info {

// Wraps a text that begins in column `at`, between words and at the width of a terminal. The
// following lines begin in column `indent`. Ends the last line.
inline std::string wrap(std::string_view text, size_t at, size_t indent) {
  constexpr size_t columns = 100;
  std::string out;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(word.size() < text.size() ? word.size() + 1 : text.size());
    const bool first = out.empty();
    if (!first && at + 1 + word.size() > columns) {
      out += "\n" + std::string(indent, ' ');
      at = indent;
    } else if (!first) {
      out += ' ';
      ++at;
    }
    out += word;
    at += word.size();
  }
  return out + "\n";
}

// Wraps a text whose first line begins with `head`.
inline std::string wrap_after(std::string head, std::string_view text, size_t indent) {
  const size_t at = head.size();
  return std::move(head) + wrap(text, at, indent);
}

}  // namespace urma::apps::info
