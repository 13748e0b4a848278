// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "apps/urma_perf/tests.h"

namespace urma::apps::perf {

// The messages of one process for another one, in a traffic pattern.
struct Flow {
  uint32_t from;
  uint32_t to;
  const Test* test;
};

// Which of several processes send to which, all at the same time.
struct Traffic {
  std::string_view name;
  std::vector<Flow> (*flows)(uint32_t processes, const Test& test);
};

inline constexpr uint32_t most_processes = 64;
inline constexpr uint32_t most_flows = 256;

// one_to_one: each process of the first half sends to one of the second half. incast: all send to
// the first one. all_to_all: each sends to each other one.
extern const std::array<Traffic, 3> all_traffic;

// Returns whether a client alone moves data in both directions: it writes and reads.
bool moves_both_ways(const Test& test);
// Returns the flows of --bidirectional. Of writes and reads both are of process 0, the client,
// which writes to process 1 and reads from it. Of another test each process has one, and a server.
std::vector<Flow> both_directions(const Test& test);

// Returns why a number of processes is not valid for a pattern; empty if it is.
std::string objection(const Traffic& traffic, uint32_t processes);

}  // namespace urma::apps::perf
