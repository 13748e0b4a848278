#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace urma {

// A part of what one object costs for as long as it exists, used or not. What it needs beside that
// when it is used (rings, buffers of completions) is memory from its first use on.
struct BudgetPart {
  // "Jetty", "peer", "paths", "paths from the fifth on", "channel", "packet in flight"
  std::string_view object;
  std::string_view part;
  uint32_t bytes = 0;
};

// The parts of one object stand together.
using Budget = std::vector<BudgetPart>;

}  // namespace urma
