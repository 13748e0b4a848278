// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>

#include <array>
#include <atomic>
#include <string>
#include <vector>

#include "engine/news.h"
#include "urma/core/result.h"
#include "urma/core/time.h"

namespace urma::engine {

// Logs what happens to a device, on a thread of its own. The thread that runs a pass only compares
// counters and hands over a copy of them, so it never waits for the application's callback. The
// slow parts (texts, limits, the callback) are on the thread of the log.
//
// The limit on lines loses no event: `logged_` keeps the old count of a kind whose line is delayed,
// so its next line has the sum.
//
// Writers: `slot_` - the thread that has the engine token, while `full_` is 0; the log's thread
// reads it while `full_` is 1. `offered_` - the thread that has the token. `last_` - `finish`,
// before it sets `ended_`. `rung_` - both sides of a hand-over, to wake the log's thread.
class Log {
 public:
  // `device`: the device string, with which each line begins.
  Log(LogOptions options, std::string device);
  ~Log() { finish({}); }

  // Starts the thread, which first logs that the device is open. Errors: no_resources.
  Result<void> start(const std::string& description);
  // Hands over the counters if any counter that is logged has grown. Called by the thread that has
  // the engine token; neither allocates nor locks. Returns false if the log's thread has not taken
  // the previous snapshot yet: offer a later one soon.
  bool offer(const Snapshot& now);
  // Logs what is left and that the device is closed, and waits for the thread. Call no `offer`
  // after it.
  void finish(const Snapshot& last);
  // For a forked child, where the log's thread does not exist: `finish` does not wait for it.
  void abandon() { running_ = false; }

 private:
  void run();
  Time log_news(const Snapshot& now, bool all);
  template <class Text>
  void log(const LogLine& line, Text&& text);
  void ring();

  const LogOptions options_;
  const std::string device_;
  std::string opening_;

  Snapshot offered_;
  Snapshot slot_;
  Snapshot last_;
  std::atomic<uint32_t> full_{0};
  std::atomic<uint32_t> rung_{0};
  std::atomic<bool> ended_{false};
  bool running_ = false;
  pthread_t thread_{};

  // The count that was last logged, for each kind. Only the log's thread uses it.
  struct Logged {
    uint64_t count = 0;
    Time next{};  // the earliest time of its next line
  };
  std::vector<Logged> logged_;
};

}  // namespace urma::engine
