// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_perf/tests.h"

namespace urma::apps::perf {
namespace {

using enum Shape;

// clang-format off
constexpr Test tests[] = {
    {"write_lat", Operation::write, false, post_to_completion, "write, post to completion"},
    {"write_bw", Operation::write, false, bandwidth, "writes, many outstanding"},
    {"read_lat", Operation::read, false, post_to_completion, "read, post to completion"},
    {"read_bw", Operation::read, false, bandwidth, "reads, many outstanding"},
    {"send_lat", Operation::send, false, half_round_trip, "send, half of a round trip"},
    {"send_bw", Operation::send, false, bandwidth, "sends, many outstanding"},
    {"write_imm_lat", Operation::write, true, half_round_trip,
     "write with immediate, half of a round trip"},
    {"write_imm_bw", Operation::write, true, bandwidth,
     "writes with immediate, many outstanding"},
    {"atomic_lat", Operation::atomic, false, post_to_completion,
     "fetch-add or compare-swap, post to completion"},
    {"atomic_bw", Operation::atomic, false, bandwidth,
     "fetch-adds or compare-swaps, many outstanding"},
    {"wake_lat", Operation::send, false, half_round_trip,
     "send_lat between sides that sleep 1 ms before each message", true},
    {"lane_write_lat", Operation::write, false, post_to_completion, "write by a lane, one call",
     false, true},
    {"lane_read_lat", Operation::read, false, post_to_completion, "read by a lane, one call",
     false, true},
    {"lane_atomic_lat", Operation::atomic, false, post_to_completion,
     "fetch-add or compare-swap by a lane, one call", false, true},
    {"kv", Operation::write, false, post_to_completion,
     "the blocks of a KV cache as one list of writes, from its post to its last completion", false,
     false, true},
};
// clang-format on

}  // namespace

std::span<const Test> all_tests() { return tests; }

const Test* find_test(std::string_view name) {
  for (const Test& test : tests) {
    if (test.name == name) return &test;
  }
  return nullptr;
}

std::string test_names() {
  std::string names;
  for (const Test& test : tests) {
    if (!names.empty()) names += ", ";
    names += test.name;
  }
  return names;
}

}  // namespace urma::apps::perf
