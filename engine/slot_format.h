// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

namespace urma::engine {

// How many rows a slot of a statistics page has and how long they are, as a line of its text says.
struct SlotFormat {
  static constexpr uint32_t most_rows_of_any = 4096;
  static constexpr uint32_t most_row_bytes = 4096;

  uint32_t rows = 0;
  uint32_t row_bytes = 0;

  std::string text() const { return std::to_string(rows) + "\t" + std::to_string(row_bytes); }

  // Reads what `text` returned. Returns false if it is malformed, or out of bounds.
  // `least_row_bytes` bounds the memory that a page can cost.
  bool read(std::string_view text, uint32_t least_row_bytes) {
    const size_t tab = std::min(text.find('\t'), text.size());
    return read_number(text.substr(0, tab), 1, most_rows_of_any, rows) &&
           read_number(text.substr(std::min(tab + 1, text.size())), least_row_bytes, most_row_bytes,
                       row_bytes);
  }

 private:
  static bool read_number(std::string_view part, uint32_t least, uint32_t most, uint32_t& out) {
    const auto [end, failure] = std::from_chars(part.data(), part.data() + part.size(), out);
    return failure == std::errc{} && end == part.data() + part.size() && out >= least &&
           out <= most;
  }
};

}  // namespace urma::engine
