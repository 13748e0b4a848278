// SPDX-License-Identifier: Apache-2.0
// Runs scenarios of congestion and prints a line of JSON for each cell.

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "tests/congestion/scenarios.h"

namespace urma::test {
namespace {

void print(const Row& row) {
  std::printf(R"({"scenario": "%.*s", "cell": "%s", "cc": "%.*s")",
              static_cast<int>(row.scenario.size()), row.scenario.data(), row.cell.c_str(),
              static_cast<int>(row.algorithm.size()), row.algorithm.data());
  for (const auto& [name, value] : row.figures) {
    if (std::isfinite(value)) {
      std::printf(R"(, "%s": %.6g)", name, value);
    } else {
      std::printf(R"(, "%s": null)", name);
    }
  }
  std::printf(R"(, "hash": "%016llx"})"
              "\n",
              static_cast<unsigned long long>(row.trace_hash));
  std::fflush(stdout);
}

// Whether a comma-separated list contains the word; an empty list contains all.
bool contains(std::string_view list, std::string_view word) {
  if (list.empty()) return true;
  while (!list.empty()) {
    const size_t comma = list.find(',');
    if (list.substr(0, comma) == word) return true;
    list = comma == std::string_view::npos ? std::string_view() : list.substr(comma + 1);
  }
  return false;
}

int run(std::string_view scenarios, std::string_view cell_name, std::string_view wanted,
        uint32_t seed) {
  std::vector<Cell> all = cells();
  int printed = 0;
  for (const std::string_view algorithm : algorithms()) {
    if (!contains(wanted, algorithm)) continue;
    if (contains(scenarios, "anchor") && cell_name.empty()) {
      const Row row = anchor(algorithm);
      if (!row.figures.empty()) print(row);
    }
    for (Cell& cell : all) {
      if (!contains(scenarios, cell.scenario)) continue;
      if (!cell_name.empty() && cell.name != cell_name) continue;
      cell.seed = seed;
      print(cell.run(cell, algorithm));
      ++printed;
    }
  }
  if (printed > 0 || scenarios == "anchor") return 0;
  std::fprintf(stderr, "contention: no such cell\n");
  return 2;
}

}  // namespace
}  // namespace urma::test

int main(int argc, char** argv) {
  std::string_view scenario, cell, algorithm;
  uint32_t seed = 1;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--scenario") == 0) scenario = argv[i + 1];
    if (std::strcmp(argv[i], "--cell") == 0) cell = argv[i + 1];
    if (std::strcmp(argv[i], "--seed") == 0) {
      seed = static_cast<uint32_t>(std::strtoul(argv[i + 1], nullptr, 10));
    }
    if (std::strcmp(argv[i], "--cc") == 0) algorithm = argv[i + 1];
  }
  return urma::test::run(scenario, cell, algorithm, seed);
}
