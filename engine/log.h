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

// Tells an application what happens to a device, on a thread of its own: whoever runs the passes
// compares counters and hands over a copy of them, and is never kept by what the application does
// with a line. All that is slow - texts, limits, the callback - is on that thread.
//
// The limit on lines leaves nothing out: a kind that was told just now stays where it was in what
// has been told, and its next line has the sum.
//
// Writers: `slot_` - who has the token while `full_` is 0, the thread reads it while it is 1;
// `offered_` - who has the token; `last_` - `finish`, before it says so; `rung_` - both sides of a
// hand-over, to wake the thread.
class Log {
 public:
  // `device`: in front of each line.
  Log(LogOptions options, std::string device);
  ~Log() { finish({}); }

  // Starts the thread, which first tells that the device is open.
  Result<void> start(const std::string& description);
  // With the token; neither allocates nor locks. False: the thread is busy with what came before,
  // so offer a later moment again, soon.
  bool offer(const Snapshot& now);
  // Tells what is left, and that the device is closed, and waits for it. Nothing is offered any
  // more.
  void finish(const Snapshot& last);
  // In a child of its process there is no thread.
  void abandon() { running_ = false; }

 private:
  void run();
  Time tell_news(const Snapshot& now, bool all);
  template <class Text>
  void tell(LogLevel level, std::string_view kind, uint64_t count, Text&& text);
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

  // Of the thread, by kind.
  struct Told {
    uint64_t count = 0;
    Time next{};  // not before
  };
  std::vector<Told> told_;
};

}  // namespace urma::engine
