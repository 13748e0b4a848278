// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_perf/flows.h"

#include <fmt/format.h>

namespace urma::apps::perf {
namespace {

std::vector<Flow> one_to_one(uint32_t processes, const Test& test) {
  std::vector<Flow> flows;
  const uint32_t half = processes / 2;
  for (uint32_t i = 0; i < half; ++i) flows.push_back({i, half + i, &test});
  return flows;
}

std::vector<Flow> incast(uint32_t processes, const Test& test) {
  std::vector<Flow> flows;
  for (uint32_t i = 1; i < processes; ++i) flows.push_back({i, 0, &test});
  return flows;
}

std::vector<Flow> all_to_all(uint32_t processes, const Test& test) {
  std::vector<Flow> flows;
  for (uint32_t i = 0; i < processes; ++i) {
    for (uint32_t k = 0; k < processes; ++k) {
      if (i != k) flows.push_back({i, k, &test});
    }
  }
  return flows;
}

}  // namespace

const std::array<Traffic, 3> all_traffic = {
    Traffic{"one_to_one", one_to_one}, {"incast", incast}, {"all_to_all", all_to_all}};

bool moves_both_ways(const Test& test) { return test.name == "write_bw" || test.name == "read_bw"; }

std::vector<Flow> both_directions(const Test& test) {
  if (!moves_both_ways(test)) return {{0, 1, &test}, {1, 0, &test}};
  return {{0, 1, find_test("write_bw")}, {1, 0, find_test("read_bw")}};
}

std::string objection(const Traffic& traffic, uint32_t processes) {
  if (traffic.name == "one_to_one" && processes % 2 != 0) {
    return fmt::format(
        "--processes {}: in one_to_one each process has one other one. Fix: --processes {}",
        processes, processes + 1);
  }
  const size_t flows = traffic.flows(processes, *find_test("write_bw")).size();
  if (flows <= most_flows) return {};
  return fmt::format(
      "--processes {}: {} makes {} flows, each with a process, which are more than {}. Fix: "
      "--processes 16 or fewer",
      processes, traffic.name, flows, most_flows);
}

}  // namespace urma::apps::perf
