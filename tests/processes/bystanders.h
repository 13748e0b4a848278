#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/processes/child.h"
#include "tests/processes/traffic.h"
#include "tests/stopwatch.h"

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

// How long a thread has waited for a processor so far, as the system counts it.
class ProcessorWaits {
 public:
  explicit ProcessorWaits(const std::string& task)
      : file_(::open(("/proc/" + task + "/schedstat").c_str(), O_RDONLY | O_CLOEXEC)) {}
  ProcessorWaits(const ProcessorWaits&) = delete;
  ProcessorWaits& operator=(const ProcessorWaits&) = delete;
  ~ProcessorWaits() { ::close(file_); }

  Duration sum() const {
    std::array<char, 100> text{};
    long long ran = 0;
    long long waited = 0;
    if (pread(file_, text.data(), text.size() - 1, 0) <= 0) return {};
    return std::sscanf(text.data(), "%lld %lld", &ran, &waited) == 2 ? Duration(waited)
                                                                     : Duration{};
  }

 private:
  int file_;
};

// Of the thread that calls: stands still while it waits for a processor.
inline Time own_clock() {
  thread_local const ProcessorWaits waits("thread-self");
  for (;;) {
    const Duration before = waits.sum();
    const Time now = read_clock();
    if (waits.sum() == before) return now - before;
  }
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

  // The longest gap since the last call, but for what either waited for a processor: that is not
  // what the library does to them.
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
    const ProcessorWaits others(std::to_string(other_.pid()));
    const auto clock = [&] { return own_clock() - others.sum(); };
    Duration longest{};
    uint64_t completed = traffic_.completed();
    Time last = clock();
    while (!stop_) {
      traffic_.turn();
      const bool any = std::exchange(completed, traffic_.completed()) != traffic_.completed();
      if (!any && !asked_) continue;
      const Time now = clock();
      longest = std::max(longest, now - std::exchange(last, now));
      if (!asked_) continue;
      gap_ = std::exchange(longest, Duration{});
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
