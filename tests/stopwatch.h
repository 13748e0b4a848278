#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/clock.h"

namespace urma::test {

// How long the threads of a process have waited for a processor so far, as the system counts it.
// Zero where it does not.
inline Duration processor_waits(pid_t process) {
  Duration sum{};
  std::error_code gone;
  const std::string tasks = "/proc/" + std::to_string(process) + "/task";
  for (const auto& task : std::filesystem::directory_iterator(tasks, gone)) {
    std::ifstream schedstat(task.path() / "schedstat");
    int64_t ran = 0;
    int64_t waited = 0;
    if (schedstat >> ran >> waited) sum += Duration(waited);
  }
  return sum;
}

// Measures what the library takes, on a machine that may be busy with other things: the time that
// has passed, less what this process and `others` have waited for processors meanwhile. Making one
// and asking it takes some 20 us for each thread.
class Stopwatch {
 public:
  explicit Stopwatch(const std::vector<pid_t>& others = {}) : processes_(others) {
    processes_.push_back(getpid());
    waits_ = waits();
    begun_ = read_clock();
  }
  Duration elapsed() const {
    const Duration passed = read_clock() - begun_;
    // The waits of threads that have ended are no longer counted.
    return passed - std::max(waits() - waits_, Duration{});
  }

 private:
  Duration waits() const {
    Duration sum{};
    for (const pid_t process : processes_) sum += processor_waits(process);
    return sum;
  }

  std::vector<pid_t> processes_;
  Duration waits_{};
  Time begun_{};
};

}  // namespace urma::test
