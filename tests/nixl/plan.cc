// SPDX-License-Identifier: Apache-2.0
// Measures a plan of a KV cache between two processes: nixl_plan DEVICE [BLOCKS] [BYTES]. Blocks of
// BYTES are written to other places of the target, in one request. The default is that of
// DeepSeek-R1 in docs/nixl.md. Prints medians: a line for each step.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "tests/nixl/agent.h"
#include "tests/nixl/target.h"
#include "tests/processes/child.h"

namespace {

using Clock = std::chrono::steady_clock;

double us_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + static_cast<ptrdiff_t>(values.size() / 2));
  return values[values.size() / 2];
}

}  // namespace

int main(int count, char** words) {
  if (count < 2) return 2;
  const size_t blocks = count > 2 ? std::stoull(words[2]) : 298;
  const size_t bytes = count > 3 ? std::stoull(words[3]) : 1'179'648;
  const size_t memory = blocks * bytes;
  const urma::test::Child target({URMA_NIXL_TARGET, words[1], std::to_string(memory)});
  urma::test::Agent agent("initiator", words[1], memory);
  if (!load_target(agent, target)) return 1;
  // Each block goes to the place of another one, so that none continues the one before.
  std::vector<urma::test::Agent::Range> ranges;
  for (size_t i = 0; i < blocks; ++i) {
    ranges.push_back({i * bytes, (blocks - 1 - i) * bytes, bytes});
  }
  std::vector<double> prepared;
  std::vector<double> posted;
  std::vector<double> moved;
  for (int round = 0; round < 17; ++round) {
    const auto lists = agent.lists(ranges);
    nixlBackendReqH* handle = nullptr;
    const auto begin = Clock::now();
    nixl_status_t status =
        agent.engine().prepXfer(NIXL_WRITE, lists.first, lists.second, "target", handle);
    prepared.push_back(us_since(begin));
    if (status != NIXL_SUCCESS) return std::printf("prepXfer: %d\n", status), 1;
    const auto began = Clock::now();
    status = agent.post(handle);
    posted.push_back(us_since(began));
    status = agent.finish(handle, status);
    moved.push_back(us_since(began));
    agent.engine().releaseReqH(handle);
    if (status != NIXL_SUCCESS) return std::printf("transfer: %d\n", status), 1;
  }
  std::printf("%zu blocks of %zu bytes over %s\n", blocks, bytes, words[1]);
  std::printf("prepare   %10.1f us\n", median(prepared));
  std::printf("post      %10.1f us\n", median(posted));
  std::printf("transfer  %10.1f us, %.2f GB/s\n", median(moved),
              static_cast<double>(memory) / median(moved) / 1e3);
}
