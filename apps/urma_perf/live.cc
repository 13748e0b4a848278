// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_perf/live.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "apps/urma_perf/machine.h"
#include "apps/urma_perf/table.h"

namespace urma::apps::perf {
namespace {

int find_terminal() {
  for (const int descriptor : {STDERR_FILENO, STDOUT_FILENO}) {
    if (isatty(descriptor) == 1) return descriptor;
  }
  return -1;
}

}  // namespace

Live::Live(bool shown, const Case& what, const std::string& device, const Schedule& schedule,
           std::function<std::string()> news)
    : terminal_(shown ? find_terminal() : -1),
      what_(what),
      device_(device),
      schedule_(schedule),
      news_(std::move(news)) {
  if (terminal_ >= 0) thread_ = std::thread([this] { run(); });
}

Live::~Live() {
  if (terminal_ < 0) return;
  {
    const std::lock_guard held(mutex_);
    over_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void Live::run() {
  unpin();  // this thread must not use the processors of the measurement
  const int64_t begin = now();
  uint64_t messages = 0;
  int64_t time = 0;
  std::unique_lock held(mutex_);
  while (!changed_.wait_for(held, std::chrono::seconds(1), [this] { return over_; })) {
    const uint64_t all = progress_.messages.load(std::memory_order_relaxed);
    const int64_t all_time = progress_.time.load(std::memory_order_relaxed);
    show(line(all - messages, all_time - time, now() - begin) + news_());
    messages = all;
    time = all_time;
  }
  show("");
}

// Returns "row 5 of 30, 14 s left: ", if there are several rows and they end at a time.
std::string Live::place(int64_t since) const {
  constexpr double longest = 24 * 3600;
  if (schedule_.rows < 2) return "";
  const int64_t own = std::max<int64_t>(schedule_.row_time() - since, 0);
  const double left = seconds(own + schedule_.later_rows_time);
  const std::string row = fmt::format("row {} of {}", schedule_.row, schedule_.rows);
  return left > longest ? row + ": " : fmt::format("{}, {:.0f} s left: ", row, left);
}

// Describes the part of the last second in which the limit did not run.
std::string Live::line(uint64_t messages, int64_t time, int64_t since) const {
  std::string text = fmt::format("{}{} {} {}: {:.0f} s", place(since), what_.test->name, device_,
                                 size_text(what_.bytes), seconds(since));
  if (messages == 0 || time <= 0) return text;
  const double rate = static_cast<double>(messages) / seconds(time) * schedule_.threads;
  return text + fmt::format(", {} msg/s, {} GB/s", rate_text(rate),
                            three_digits(rate * static_cast<double>(what_.bytes) / 1e9));
}

void Live::show(const std::string& text) const {
  const std::string whole = "\r\033[K" + text;
  // If the terminal is gone, the measurement continues.
  (void)!::write(terminal_, whole.data(), whole.size());
}

}  // namespace urma::apps::perf
