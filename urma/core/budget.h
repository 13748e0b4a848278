// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace urma {

// One part of the memory that an object takes for as long as it exists, used or not. Rings and
// buffers that an object needs only when it is used are not included; they take memory from their
// first use on.
struct BudgetPart {
  // "Jetty", "peer", "paths", "paths from the fifth on", "channel", "packet in flight"
  std::string_view object;
  std::string_view part;  // what the bytes are for
  uint32_t bytes = 0;     // how many
};

// The parts of one object are adjacent.
using Budget = std::vector<BudgetPart>;

}  // namespace urma
