// SPDX-License-Identifier: Apache-2.0
// An agent whose process is killed in the middle of a transfer: each request ends soon, and the
// next process of that name is reached.
#include <sys/prctl.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/prng.h"
#include "tests/catch.h"
#include "tests/nixl/agent.h"
#include "tests/nixl/target.h"
#include "tests/processes/child.h"

namespace urma::test {
namespace {

constexpr size_t memory_bytes = 1 << 20;

size_t descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(all), end(all)));
}

size_t resident_pages() {
  size_t all = 0;
  size_t resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident;
}

}  // namespace

TEST_CASE("an agent is killed in the middle of transfers") {
  // A huge page would count as 512 pages, and the kernel may make one at any time.
  REQUIRE(prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) == 0);
  const Media media;
  for (const std::string& device : media.devices()) {
    INFO(device);
    Agent agent("initiator", device, memory_bytes);
    Prng prng(3);
    size_t descriptors_before = 0;
    size_t pages_before = 0;
    const std::string info = agent.info();
    for (int round = 0; round < 25; ++round) {
      Child target({URMA_NIXL_TARGET, device});
      REQUIRE(load_target(agent, target));
      // It answers, so data and notifications pass in both directions.
      REQUIRE(agent.run(NIXL_WRITE, {{0, 0, 5000}}, &info) == NIXL_SUCCESS);
      REQUIRE(agent.notes(1).size() == 1);
      std::vector<Agent::Range> ranges;
      for (size_t i = 0; i < 100; ++i) ranges.push_back({i * 10'000, i * 10'001, 9000});
      nixlBackendReqH* const handle =
          agent.prepare(round % 2 == 0 ? NIXL_WRITE : NIXL_READ, ranges);
      REQUIRE(handle != nullptr);
      const auto kill_at =
          std::chrono::steady_clock::now() + std::chrono::microseconds(prng.below(3000));
      nixl_status_t status = NIXL_SUCCESS;
      std::chrono::steady_clock::time_point killed{};
      while (status == NIXL_SUCCESS) {
        status = agent.post(handle);
        while (status == NIXL_IN_PROG) {
          if (killed == decltype(killed)() && std::chrono::steady_clock::now() > kill_at) {
            target.end(SIGKILL);
            killed = std::chrono::steady_clock::now();
          }
          status = agent.engine().checkXfer(handle);
        }
      }
      const auto took = std::chrono::steady_clock::now() - killed;
      CHECK(status == NIXL_ERR_REMOTE_DISCONNECT);
      // 1 s is promised; a busy machine may take its time.
      CHECK(took < std::chrono::seconds(5));
      agent.engine().releaseReqH(handle);
      if (round == 4) {
        descriptors_before = descriptors();
        pages_before = resident_pages();
      }
    }
    CHECK(descriptors() <= descriptors_before);
    CHECK(resident_pages() < pages_before + 500);
  }
}

}  // namespace urma::test
