// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/processes/child.h"
#include "tests/processes/traffic.h"

namespace urma::test {

// Returns the number of rounds; URMA_TEST_ROUNDS=200 sets a larger one.
inline int rounds() {
  const char* const asked = std::getenv("URMA_TEST_ROUNDS");
  return asked != nullptr ? std::atoi(asked) : 20;
}

inline size_t entries_of(const std::string& folder, const std::string& beginning = {}) {
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    count += entry.path().filename().string().starts_with(beginning);
  }
  return count;
}

// A pair of processes that exchange works all the time, beside processes that are stopped or
// killed.
class Pair {
 public:
  // `serve_calm`: the command line of the other process.
  Pair(const std::string& device, std::vector<std::string> serve_calm)
      : other_(std::move(serve_calm)),
        side_(Side::open(device)),
        traffic_(side_.jetty, side_.device.import("urma://localhost/calm").value()),
        thread_([this] { run(); }) {}
  ~Pair() { end(); }

  // Waits until the pair has completed `works` more works. Returns false if it has stopped.
  [[nodiscard]] bool goes_on(uint64_t works = 100) const {
    const uint64_t before = completed_;
    for (const Time begun = read_clock(); completed_ < before + works;) {
      if (since(begun) > patience) return false;
      std::this_thread::sleep_for(1ms);
    }
    return true;
  }
  // Returns whether each work has completed as ok.
  bool end() {
    if (!thread_.joinable()) return true;
    stop_ = true;
    thread_.join();
    traffic_.finish();
    return traffic_.all_completed() && traffic_.ended(Status::ok) == traffic_.completed();
  }

 private:
  void run() {
    while (!stop_) {
      traffic_.turn();
      completed_ = traffic_.completed();
    }
  }

  Child other_;
  Side side_;
  Traffic traffic_;
  std::atomic<bool> stop_{false};
  std::atomic<uint64_t> completed_{0};
  std::thread thread_;
};

}  // namespace urma::test
