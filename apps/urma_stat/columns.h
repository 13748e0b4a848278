// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace urma::apps::stat {

// A column of a table, with its values.
struct Strip {
  std::string_view name;
  std::string title;
  size_t width;
  bool text = false;  // text: aligned to the left, and cut if necessary
  std::vector<std::string> cells = {};
};

// Returns how wide the table is.
size_t width_of(const std::vector<Strip>& strips);
// Returns the line of titles, or the line of one row.
std::string title_line(const std::vector<Strip>& strips);
std::string row_line(const std::vector<Strip>& strips, size_t row);
// Returns the titles, and a line for each row.
std::string lines_of(const std::vector<Strip>& strips);

// Returns `before` and the text behind it, broken at blanks so that no line is longer than the
// room. All lines but the first are indented. Words that are longer stay whole. Without room it is
// one line.
std::string wrapped(std::string before, std::string_view text, std::optional<size_t> room,
                    size_t indent = 2);

// Returns a number in three digits with a unit: "0", "12.3", "456k", "1.20M".
std::string short_number(double value);
// Returns the number as short_number does, or "-" if there is no value.
std::string shown(std::optional<double> value);
// Returns a time in its largest unit: "45 s", "12 min", "3 h", "5 d".
std::string span(int64_t seconds);
// The same for narrow columns: "45s", "12min", "3h", "5d".
std::string short_span(int64_t seconds);

}  // namespace urma::apps::stat
