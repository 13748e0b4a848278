// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "apps/urma_perf/case.h"
#include "apps/urma_perf/case_run.h"
#include "apps/urma_perf/progress.h"

namespace urma::apps::perf {

// Prints a line about the running case once a second, and erases it at the end. Only on a terminal.
// It has its own thread, because terminals are slow.
class Live {
 public:
  // `shown`: if there is a terminal. `news`: returns what else to print now.
  Live(bool shown, const Case& what, const std::string& device, const Schedule& schedule,
       std::function<std::string()> news);
  ~Live();
  Live(const Live&) = delete;

  // Returns where the loops report their progress; null if there is no terminal.
  Progress* progress() { return terminal_ < 0 ? nullptr : &progress_; }

 private:
  void run();
  std::string line(uint64_t messages, int64_t time, int64_t since) const;
  std::string place(int64_t since) const;
  void show(const std::string& text) const;

  const int terminal_;
  const Case what_;
  const std::string device_;
  const Schedule schedule_;
  const std::function<std::string()> news_;
  Progress progress_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::thread thread_;  // destroyed first, because it uses the others
};

}  // namespace urma::apps::perf
