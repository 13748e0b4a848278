// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "apps/urma_perf/case.h"
#include "apps/urma_perf/case_run.h"
#include "apps/urma_perf/options.h"
#include "apps/urma_perf/progress.h"

namespace urma::apps::perf {

// Shows the progress of the running case once a second: on a terminal as one line, which it erases
// at the end; otherwise as lines on stderr, or, with --json-stream, as objects on stdout. It has
// its own thread, because terminals are slow.
class Live {
 public:
  enum class Form : uint8_t { none, line, lines, objects };
  // Returns the form for a run with these options on this terminal, if it is one.
  static Form form_for(const Options& options);

  struct About {
    Form form = Form::none;
    const Case& what;
    const std::string& device;
    const Schedule& schedule;
    // Returns the counters of this side; empty if this process has no device.
    std::function<std::optional<Statistics>()> counters{};
    // Where the loops report their progress, if that is in memory of several processes.
    Progress* progress = nullptr;
  };
  explicit Live(const About& about);
  ~Live();
  Live(const Live&) = delete;

  // Returns where the loops report their progress; null if nothing is shown.
  Progress* progress() { return form_ == Form::none ? nullptr : progress_; }
  // Ends the thread. Throws the Failure with which an object could not be printed, because a stream
  // that lacks some is not whole.
  void end();

 private:
  // One interval of about a second, and the progress in it.
  struct Interval {
    int64_t since = 0;  // the beginning of the case
    int64_t length = 0;
    uint64_t messages = 0;
    int64_t time = 0;  // of all threads together, in loops
    std::optional<Statistics> before;
    std::optional<Statistics> after;
  };

  void run();
  void show(const Interval& interval);
  void join();
  double rate(const Interval& interval) const;
  // `device` is empty, or ends with a blank.
  std::string line(const Interval& interval, std::string_view device) const;
  std::string fitting_line(const Interval& interval) const;
  nlohmann::json object(const Interval& interval) const;
  std::string place(int64_t since) const;
  void show_line(const std::string& text) const;

  const Form form_;
  const int terminal_;
  const Case what_;
  const std::string device_;
  const Schedule schedule_;
  const std::function<std::optional<Statistics>()> counters_;
  Progress own_;
  Progress* const progress_;
  std::exception_ptr failed_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::thread thread_;  // destroyed first, because it uses the others
};

}  // namespace urma::apps::perf
