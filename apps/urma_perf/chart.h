// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace urma::apps::perf {

// A drawing of lines over logarithmic axes, as an SVG without scripts, fonts or other files. It
// does not know what was measured.
struct Chart {
  struct Line {
    std::string name;                               // in the legend
    size_t colour = 0;                              // lines of one thing have one colour
    bool dashed = false;                            // and are told apart by this
    std::vector<std::pair<double, double>> points;  // x and y, by rising x
  };
  struct Tick {
    double at;
    std::string label;
  };
  struct Panel {
    std::string title;
    std::string x_title;
    std::string y_title;
    std::vector<Tick> x_ticks;
    std::vector<Line> lines;
  };

  std::vector<Panel> panels;  // from left to right
  std::string note;           // below them

  // Points whose x or y is not positive are left out. Without points a panel is empty.
  std::string svg() const;
};

}  // namespace urma::apps::perf
