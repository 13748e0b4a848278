// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_stat/columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace urma::apps::stat {
namespace {

std::string cell(std::string_view text, size_t width) {
  if (text.size() <= width) return fmt::format("{:<{}}", text, width);
  return fmt::format("{}~", text.substr(0, width - 1));
}

template <class Cell>
std::string line_of(const std::vector<Strip>& strips, Cell&& of) {
  std::string out;
  for (const Strip& strip : strips) {
    if (!out.empty()) out += " ";
    out +=
        strip.text ? cell(of(strip), strip.width) : fmt::format("{:>{}}", of(strip), strip.width);
  }
  return out + "\n";
}

}  // namespace

std::string wrapped(std::string before, std::string_view text, std::optional<size_t> room,
                    size_t indent) {
  size_t used = before.size();
  for (bool first = true; !text.empty(); first = false) {
    const size_t end = std::min(text.find(' '), text.size());
    const size_t blank = first ? 0 : 1;
    if (!first && room && used + blank + end > *room) {
      before += '\n' + std::string(indent, ' ');
      used = indent;
    } else {
      before.append(blank, ' ');
      used += blank;
    }
    before += text.substr(0, end);
    used += end;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return before + '\n';
}

std::string short_number(double value) {
  constexpr const char* units[] = {"", "k", "M", "G", "T", "P", "E"};
  size_t unit = 0;
  for (; value >= 999.5 && unit + 1 < std::size(units); ++unit) value /= 1000;
  if (unit == 0 && value == std::floor(value)) return fmt::format("{:.0f}", value);
  return fmt::format("{:.{}f}{}", value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0, units[unit]);
}

std::string shown(std::optional<double> value) { return value ? short_number(*value) : "-"; }

std::string span(int64_t seconds) {
  if (seconds < 100) return fmt::format("{} s", std::max<int64_t>(seconds, 0));
  if (seconds < 100 * 60) return fmt::format("{} min", seconds / 60);
  if (seconds < 100 * 3600) return fmt::format("{} h", seconds / 3600);
  return fmt::format("{} d", seconds / 86'400);
}

std::string short_span(int64_t seconds) {
  std::string out = span(seconds);
  std::erase(out, ' ');
  return out;
}

size_t width_of(const std::vector<Strip>& strips) {
  size_t all = strips.empty() ? 0 : strips.size() - 1;
  for (const Strip& strip : strips) all += strip.width;
  return all;
}

std::string title_line(const std::vector<Strip>& strips) {
  return line_of(strips, [](const Strip& strip) { return strip.title; });
}

std::string row_line(const std::vector<Strip>& strips, size_t row) {
  return line_of(strips, [row](const Strip& strip) { return strip.cells[row]; });
}

std::string lines_of(const std::vector<Strip>& strips) {
  std::string out = title_line(strips);
  const size_t rows = strips.empty() ? 0 : strips.front().cells.size();
  for (size_t i = 0; i < rows; ++i) out += row_line(strips, i);
  return out;
}

}  // namespace urma::apps::stat
