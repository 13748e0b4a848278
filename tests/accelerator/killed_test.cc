// SPDX-License-Identifier: Apache-2.0
// Processes that are killed or stopped while they copy between GPUs.

#include <filesystem>
#include <thread>

#include "base/prng.h"
#include "tests/accelerator/gpu.h"
#include "tests/api/helpers.h"
#include "tests/processes/child.h"

namespace urma::test {
namespace {

constexpr size_t bytes = 300'000;

// The owner of memory to which another process writes.
struct Owner {
  explicit Owner(std::string_view driver)
      : medium(driver), device(urma::open(medium.text(), {.threads = Threads::served}).value()) {}

  Segment add() { return device.register_memory(memory.span()).value(); }
  std::vector<std::string> writer(const Segment& segment) const {
    return {URMA_GPU_WRITER, medium.text(), segment.descriptor()};
  }
  // After a fence nothing is written any more.
  void check_quiet() {
    memory.fill(std::byte{7});
    std::this_thread::sleep_for(5ms);
    CHECK(all_are(memory.get(0, bytes), std::byte{7}));
  }

  Medium medium;
  GpuBytes memory{bytes, 1};
  Device device;
};

size_t descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(all), end(all)));
}

TEST_CASE("a process is killed while it copies: its copies end, and the next one is served") {
  for (const std::string_view driver : media) {
    Owner owner(driver);
    Prng prng(4);
    size_t before = 0;
    for (int round = 0; round < 25; ++round) {
      INFO(driver << " round " << round);
      Segment segment = owner.add();
      Child child(owner.writer(segment));
      REQUIRE(child.said() == "carried");
      std::this_thread::sleep_for(std::chrono::microseconds(prng.below(3000)));
      child.end(SIGKILL);
      REQUIRE(segment.unregister());
      owner.check_quiet();
      if (round == 4) before = descriptors();
      if (round > 4) CHECK(descriptors() <= before + 2);
    }
  }
}

// Takes the memory back in one of the ways that there are.
Result<void> take_back(Segment& segment, int way) {
  if (way == 0) return segment.unregister();
  if (way == 1) return segment.revoke();
  if (auto rotated = segment.rotate(); !rotated && rotated.status() != Status::invalid_argument) {
    return rotated.error();
  }
  return segment.retire();
}

TEST_CASE("memory is taken back from a process that copies, or is stopped") {
  for (const std::string_view driver : {"udp:", "cxl:", "udp:?engines=2"}) {
    Owner owner(driver);
    Prng prng(5);
    for (int round = 0; round < 6; ++round) {
      INFO(driver << " round " << round);
      const int way = round % 3;
      Segment segment = owner.add();
      Child child(owner.writer(segment));
      REQUIRE(child.said() == "carried");
      std::this_thread::sleep_for(std::chrono::microseconds(prng.below(3000)));
      const bool stops = round >= 3;
      if (stops) child.stop();
      const auto begin = std::chrono::steady_clock::now();
      Result<void> done = take_back(segment, way);
      CHECK(std::chrono::steady_clock::now() - begin < patience);
      if (!stops) REQUIRE(done);
      if (done && way < 2) owner.check_quiet();
      if (!done) CHECK(done.status() == Status::not_fenced);
      if (stops) child.go_on();
      const auto limit = std::chrono::steady_clock::now() + patience;
      while (!done && std::chrono::steady_clock::now() < limit) done = take_back(segment, way);
      REQUIRE(done);
      if (way < 2) owner.check_quiet();
    }
  }
}

}  // namespace
}  // namespace urma::test
