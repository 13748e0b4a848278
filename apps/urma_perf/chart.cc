// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_perf/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "apps/common/output.h"

namespace urma::apps::perf {
namespace {

constexpr double panel_width = 440;
constexpr double panel_height = 320;
constexpr double top = 50;
constexpr double left = 80;
constexpr double right = 30;
constexpr double legend_line = 20;
constexpr std::string_view grid = "#dddddd";
constexpr std::string_view ink = "#222222";
constexpr std::string_view paper = "#ffffff";
// Colour-blind eyes can tell these apart, too (Okabe and Ito).
constexpr std::array<std::string_view, 7> colours = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                     "#8a6d00", "#56b4e9", "#000000"};

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : apps::printable(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string text_at(double x, double y, const std::string& text, std::string_view anchor,
                    int size = 13, const std::string& more = "") {
  return fmt::format(
      "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" font-size=\"{}\"{}>{}</text>\n", x, y,
      anchor, size, more, escaped(text));
}

std::string line_at(double x1, double y1, double x2, double y2, std::string_view colour,
                    double width = 1, bool dashed = false) {
  return fmt::format(
      "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\" "
      "stroke-width=\"{}\"{}/>\n",
      x1, y1, x2, y2, colour, width, dashed ? " stroke-dasharray=\"6 4\"" : "");
}

// The least and the largest value of an axis, and where a value lies between them: 0 to 1.
struct Scale {
  double low = 1;
  double high = 10;

  double part(double value) const { return std::log(value / low) / std::log(high / low); }
};

// A value with at most three digits, for a label.
std::string label_of(double value) {
  return value < 1000 ? fmt::format("{:.3g}", value) : fmt::format("{:.0f}", value);
}

// The marks of a vertical axis: 1, 2 and 5 of each decade, or only 1 if there are many decades.
std::vector<double> marks_between(double low, double high) {
  constexpr double most_decades = 4;
  std::vector<double> out;
  const bool sparse = std::log10(high / low) > most_decades;
  for (double decade = std::pow(10, std::floor(std::log10(low))); decade <= high * 1.001;
       decade *= 10) {
    for (const double digit : {1.0, 2.0, 5.0}) {
      const double mark = decade * digit;
      if (sparse && digit > 1) continue;
      if (mark >= low * 0.999 && mark <= high * 1.001) out.push_back(mark);
    }
  }
  return out;
}

double next_below(double value) {
  const double decade = std::pow(10, std::floor(std::log10(value)));
  const double digit = value / decade;
  return decade * (digit >= 5 ? 5 : digit >= 2 ? 2 : 1);
}

double next_above(double value) {
  const double decade = std::pow(10, std::floor(std::log10(value)));
  const double digit = value / decade;
  return decade * (digit <= 1 ? 1 : digit <= 2 ? 2 : digit <= 5 ? 5 : 10);
}

bool is_shown(const std::pair<double, double>& point) {
  return point.first > 0 && point.second > 0 && std::isfinite(point.first) &&
         std::isfinite(point.second);
}

class Drawing {
 public:
  Drawing(const Chart::Panel& panel, double x) : panel_(panel), x_(x) {
    bool any = false;
    for (const Chart::Line& line : panel.lines) {
      for (const auto& point : line.points) {
        if (!is_shown(point)) continue;
        const auto& [px, py] = point;
        horizontal_ = any ? Scale{std::min(horizontal_.low, px), std::max(horizontal_.high, px)}
                          : Scale{px, px};
        vertical_ =
            any ? Scale{std::min(vertical_.low, py), std::max(vertical_.high, py)} : Scale{py, py};
        any = true;
      }
    }
    for (const Chart::Tick& tick : panel.x_ticks) {
      if (!any || tick.at <= 0) continue;
      horizontal_ = {std::min(horizontal_.low, tick.at), std::max(horizontal_.high, tick.at)};
    }
    if (horizontal_.high <= horizontal_.low) horizontal_.high = 2 * horizontal_.low;
    vertical_ = {next_below(vertical_.low), next_above(vertical_.high)};
    if (vertical_.high <= vertical_.low) vertical_.high = 2 * vertical_.low;
  }

  std::string axes() const {
    const double bottom = top + panel_height;
    std::string out = text_at(x_ + panel_width / 2, top - 18, panel_.title, "middle", 16);
    for (const double mark : marks_between(vertical_.low, vertical_.high)) {
      out += line_at(x_, y(mark), x_ + panel_width, y(mark), grid);
      out += text_at(x_ - 8, y(mark) + 4, label_of(mark), "end");
    }
    double labelled = -1e9;
    for (const Chart::Tick& tick : panel_.x_ticks) {
      out += line_at(x(tick.at), top, x(tick.at), bottom, grid);
      constexpr double least_between_labels = 34;
      if (x(tick.at) - labelled < least_between_labels) continue;
      labelled = x(tick.at);
      out += text_at(labelled, bottom + 18, tick.label, "middle");
    }
    out += line_at(x_, bottom, x_ + panel_width, bottom, ink);
    out += line_at(x_, top, x_, bottom, ink);
    out += text_at(x_ + panel_width / 2, bottom + 40, panel_.x_title, "middle");
    const double title_x = x_ - 56;
    const double title_y = top + panel_height / 2;
    return out + text_at(title_x, title_y, panel_.y_title, "middle", 13,
                         fmt::format(" transform=\"rotate(-90 {:.1f} {:.1f})\"", title_x, title_y));
  }

  std::string lines() const {
    std::string out;
    for (const Chart::Line& line : panel_.lines) {
      std::string points;
      std::string dots;
      constexpr size_t most_dots = 40;
      for (const auto& point : line.points) {
        if (!is_shown(point)) continue;
        points += fmt::format("{:.1f},{:.1f} ", x(point.first), y(point.second));
        if (line.points.size() > most_dots) continue;
        dots += fmt::format(
            "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" stroke=\"{}\" fill=\"{}\"/>\n",
            x(point.first), y(point.second), colour(line), line.dashed ? paper : colour(line));
      }
      out += fmt::format(
          "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"{}/>\n{}", points,
          colour(line), line.dashed ? " stroke-dasharray=\"6 4\"" : "", dots);
    }
    return out;
  }

  std::string legend() const {
    std::string out;
    double at = top + panel_height + 66;
    for (const Chart::Line& line : panel_.lines) {
      out += line_at(x_, at, x_ + 34, at, colour(line), 2, line.dashed);
      out += text_at(x_ + 42, at + 4, line.name, "start");
      at += legend_line;
    }
    return out;
  }

 private:
  static std::string_view colour(const Chart::Line& line) {
    return colours[line.colour % colours.size()];
  }
  double x(double value) const { return x_ + panel_width * horizontal_.part(value); }
  double y(double value) const { return top + panel_height * (1 - vertical_.part(value)); }

  const Chart::Panel& panel_;
  const double x_;  // of the vertical axis
  Scale horizontal_{1, 2};
  Scale vertical_{1, 10};
};

}  // namespace

std::string Chart::svg() const {
  size_t most_lines = 0;
  for (const Panel& panel : panels) most_lines = std::max(most_lines, panel.lines.size());
  const double each = left + panel_width + right;
  const double width = each * static_cast<double>(std::max<size_t>(panels.size(), 1));
  const double height = top + panel_height + 90 + legend_line * static_cast<double>(most_lines);
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
      "height=\"{1:.0f}\" font-family=\"sans-serif\" fill=\"{2}\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"{3}\"/>\n",
      width, height, ink, paper);
  for (size_t i = 0; i < panels.size(); ++i) {
    const Drawing drawing(panels[i], each * static_cast<double>(i) + left);
    out += drawing.axes() + drawing.lines() + drawing.legend();
  }
  return out + text_at(left, height - 10, note, "start", 11) + "</svg>\n";
}

}  // namespace urma::apps::perf
