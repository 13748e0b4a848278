#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "apps/urma_perf/case.h"
#include "apps/urma_perf/progress.h"

namespace urma::perf {

// The line about a case that is being measured, once a second, wiped when it is over. Only where a
// person looks: on a terminal. A thread of its own writes it, because terminals are slow.
class Live {
 public:
  // `shown`: if there is a terminal. `threads` measure. `news`: what else is to be said now.
  Live(bool shown, const Case& what, const std::string& device, uint32_t threads,
       std::function<std::string()> news);
  ~Live();
  Live(const Live&) = delete;

  // Where the loops write. Null if there is no terminal.
  Progress* progress() { return terminal_ < 0 ? nullptr : &progress_; }

 private:
  void run();
  std::string line(uint64_t messages, int64_t time, int64_t since) const;
  void show(const std::string& text) const;

  const int terminal_;
  const Case what_;
  const std::string device_;
  const uint32_t threads_;
  const std::function<std::string()> news_;
  Progress progress_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace urma::perf
