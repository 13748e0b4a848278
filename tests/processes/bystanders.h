#pragma once

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "tests/processes/child.h"
#include "tests/processes/traffic.h"

namespace urma::test {

// More by URMA_TEST_ROUNDS=200.
inline int rounds() {
  const char* const asked = std::getenv("URMA_TEST_ROUNDS");
  return asked != nullptr ? std::atoi(asked) : 20;
}

inline double milliseconds(Duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

inline size_t entries_of(const std::string& folder, const std::string& beginning = {}) {
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    count += entry.path().filename().string().starts_with(beginning);
  }
  return count;
}

// A pair that has nothing to do with those who are killed, and runs all the time.
class Pair {
 public:
  // `serve_calm`: the other one's command line.
  Pair(const std::string& device, std::vector<std::string> serve_calm)
      : other_(std::move(serve_calm)),
        side_(Side::open(device)),
        traffic_(side_.jetty, side_.device.import("urma://localhost/calm").value()),
        thread_([this] { run(); }) {}
  ~Pair() { end(); }

  // The longest gap since the last call.
  Duration gap() {
    asked_ = true;
    while (asked_) std::this_thread::sleep_for(1ms);
    return gap_;
  }
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
      if (!asked_) continue;
      gap_ = traffic_.longest_gap();
      traffic_.measure_gaps_from_now();
      asked_ = false;
    }
  }

  Child other_;
  Side side_;
  Traffic traffic_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> asked_{false};
  Duration gap_{};
  std::thread thread_;
};

}  // namespace urma::test
