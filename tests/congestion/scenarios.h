// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace urma::test {

// The result of one algorithm in one cell of a scenario. It has no figures if there were more
// packets than the simulation holds.
struct Row {
  std::string_view scenario;
  std::string cell;
  std::string_view algorithm;
  std::vector<std::pair<const char*, double>> figures;
  uint64_t trace_hash = 0;
};

struct Cell {
  std::string_view scenario;
  std::string name;
  Row (*run)(const Cell& cell, std::string_view algorithm);
  uint32_t senders = 0;
  uint64_t bytes = 0;  // of each flow, if it ends
  uint32_t seed = 1;
};

// All cells: I1, I2, I3, J1, L1, M1, X1, X2, X3.
std::vector<Cell> cells();
std::span<const std::string_view> algorithms();
// Repeats the known figure that an algorithm must reach before it is quoted. A row without figures
// means that none is known.
Row anchor(std::string_view algorithm);

}  // namespace urma::test
