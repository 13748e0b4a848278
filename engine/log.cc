// SPDX-License-Identifier: Apache-2.0
#include "engine/log.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "base/clock.h"
#include "base/futex.h"
#include "base/own_threads.h"

namespace urma::engine {
namespace {

constexpr Duration longest_sleep = std::chrono::hours(1);

}  // namespace

Log::Log(LogOptions options, std::string device)
    : options_(std::move(options)), device_(std::move(device)), logged_(all_news().size()) {}

Result<void> Log::start(const std::string& description) {
  opening_ = description;
  const auto entry = [](void* self) -> void* {
    static_cast<Log*>(self)->run();
    return nullptr;
  };
  if (const int why = start_own_thread(thread_, "urma-log", entry, this); why != 0) {
    return error(Status::no_resources,
                 std::string("starting the thread of the log: ") + std::strerror(why));
  }
  running_ = true;
  return {};
}

bool Log::offer(const Snapshot& now) {
  const auto kinds = all_news();
  const bool news = std::any_of(kinds.begin(), kinds.end(), [&](const NewsKind& kind) {
    return kind.level <= options_.level && kind.count(now) != kind.count(offered_);
  });
  if (!news) return true;
  if (full_.load(std::memory_order_acquire) != 0) return false;
  offered_ = slot_ = now;
  full_.store(1, std::memory_order_release);
  ring();
  return true;
}

void Log::finish(const Snapshot& last) {
  if (!std::exchange(running_, false)) return;
  last_ = last;
  ended_.store(true, std::memory_order_release);
  ring();
  pthread_join(thread_, nullptr);
}

void Log::ring() {
  rung_.fetch_add(1, std::memory_order_release);
  futex_wake_all(rung_);
}

// ---- the thread

// Logs a line that lacks only its text.
template <class Text>
void Log::log(const LogLine& line, Text&& text) {
  if (line.level > options_.level) return;
  try {
    const std::string whole = device_ + ": " + text();
    LogLine complete = line;
    complete.text = whole;
    options_.call(complete);
  } catch (const std::bad_alloc&) {
    // The line is lost, because there is no memory for its text.
  }
}

void Log::run() {
  log({.kind = "opened", .text = {}, .layer = "engine"}, [this] { return "opened: " + opening_; });
  Snapshot now;
  for (;;) {
    // Reads `rung_` before `ended_` and `full_`, so that a later ring ends the sleep below.
    const uint32_t rung = rung_.load(std::memory_order_acquire);
    const bool ended = ended_.load(std::memory_order_acquire);
    if (ended) {
      now = last_;
    } else if (full_.load(std::memory_order_acquire) != 0) {
      now = slot_;
      full_.store(0, std::memory_order_release);
    }
    const Time next = log_news(now, ended);
    if (ended) break;
    const Duration left = next == never ? longest_sleep : next - read_clock();
    if (left > Duration{}) futex_wait(rung_, rung, std::min(left, longest_sleep));
  }
  log({.kind = "closed", .text = {}, .layer = "engine"}, [] { return std::string("closed"); });
}

// Returns the time at which the next delayed line may be logged.
Time Log::log_news(const Snapshot& now, bool all) {
  const auto kinds = all_news();
  const Time clock = read_clock();
  Time soonest = never;
  for (size_t i = 0; i < kinds.size(); ++i) {
    const uint64_t count = kinds[i].count(now);
    Logged& logged = logged_[i];
    if (kinds[i].level > options_.level || count == logged.count) continue;
    if (clock < logged.next && !all) {
      soonest = std::min(soonest, logged.next);
      continue;
    }
    const uint64_t since = count - std::exchange(logged.count, count);
    logged.next = clock + Duration(std::chrono::seconds(1)) / options_.per_second;
    log({.level = kinds[i].level,
         .kind = kinds[i].name,
         .count = since,
         .text = {},
         .layer = kinds[i].layer},
        [&] { return kinds[i].text(now, since); });
  }
  return soonest;
}

}  // namespace urma::engine
