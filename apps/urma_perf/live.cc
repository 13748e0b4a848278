// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_perf/live.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "apps/common/interrupt.h"
#include "apps/common/output.h"
#include "apps/urma_perf/json_output.h"
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

// Returns the lost paths and channels of a device, as a part of the line.
std::string losses(const Statistics& all) {
  const uint64_t paths = all.paths_lost - std::min(all.paths_back, all.paths_lost);
  std::string text = paths > 0 ? fmt::format(", {} path{} lost", paths, paths == 1 ? "" : "s") : "";
  if (all.channels_lost > 0) text += fmt::format(", channel lost {} times", all.channels_lost);
  return text;
}

}  // namespace

Live::Form Live::form_for(const Options& options) {
  if (options.quiet) return Form::none;
  if (options.form == Options::Form::json_stream) return Form::objects;
  if (options.form != Options::Form::table) return Form::none;
  return find_terminal() >= 0 ? Form::line : Form::lines;
}

Live::Live(const About& about)
    : form_(about.form),
      terminal_(find_terminal()),
      what_(about.what),
      device_(about.device),
      schedule_(about.schedule),
      counters_(about.counters),
      progress_(about.progress != nullptr ? about.progress : &own_) {
  if (form_ != Form::none) thread_ = std::thread([this] { run(); });
}

Live::~Live() { join(); }

void Live::join() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard held(mutex_);
    over_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void Live::end() {
  join();
  if (failed_) std::rethrow_exception(failed_);
}

void Live::run() {
  unpin();  // this thread must not use the processors of the measurement
  const auto counters = [&] { return counters_ ? counters_() : std::nullopt; };
  const int64_t begin = now();
  int64_t last = begin;
  uint64_t messages = 0;
  int64_t time = 0;
  std::optional<Statistics> before = counters();
  std::unique_lock held(mutex_);
  while (!changed_.wait_for(held, std::chrono::seconds(1), [this] { return over_; })) {
    const int64_t at = now();
    const uint64_t all = progress_->messages.load(std::memory_order_relaxed);
    const int64_t all_time = progress_->time.load(std::memory_order_relaxed);
    std::optional<Statistics> after = counters();
    show({.since = at - begin,
          .length = at - last,
          .messages = all - messages,
          .time = all_time - time,
          .before = before,
          .after = after});
    last = at;
    messages = all;
    time = all_time;
    before = std::move(after);
  }
  if (form_ == Form::line) show_line("");
}

void Live::show(const Interval& interval) {
  switch (form_) {
    case Form::line:
      return show_line(fitting_line(interval));
    case Form::lines:
      return print_error(line(interval, device_ + " "));
    case Form::objects:
      try {
        if (!failed_) print(object(interval).dump() + "\n", "--json-stream");
      } catch (const Failure&) {
        // The reader has ended, or a disk is full: measuring on would be of no use.
        failed_ = std::current_exception();
        interrupt();
      }
      return;
    case Form::none:
      return;
  }
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

// Returns the messages per second in the part of the interval in which the loops ran: the limit and
// the comparison of memory do not count.
double Live::rate(const Interval& interval) const {
  if (interval.messages == 0 || interval.time <= 0) return 0;
  return static_cast<double>(interval.messages) / seconds(interval.time) * schedule_.threads;
}

std::string Live::line(const Interval& interval, std::string_view device) const {
  std::string text = fmt::format("{}{} {}{}: {:.0f} s", place(interval.since), what_.test->name,
                                 device, size_text(what_.bytes), seconds(interval.since));
  if (const double rate = this->rate(interval); rate > 0) {
    text += fmt::format(", {} msg/s, {} GB/s", rate_text(rate),
                        short_number(rate * static_cast<double>(what_.bytes) / 1e9));
  }
  return interval.after ? text + losses(*interval.after) : text;
}

nlohmann::json Live::object(const Interval& interval) const {
  const double rate = this->rate(interval);
  nlohmann::json out = {{"schema", json_schema},
                        {"type", "interval"},
                        {"test", what_.test->name},
                        {"device", device_},
                        {"size_bytes", what_.bytes},
                        {"elapsed_seconds", seconds(interval.since)},
                        {"interval_seconds", seconds(interval.length)},
                        {"measured_seconds", seconds(interval.time) / schedule_.threads},
                        {"messages", interval.messages},
                        {"messages_per_second", rate},
                        {"bytes_per_second", rate * static_cast<double>(what_.bytes)},
                        {"counters", nlohmann::json::object()}};
  if (!interval.before || !interval.after) return out;
  for (const auto& [name, value] : difference(*interval.after, *interval.before)) {
    if (value != 0) out["counters"]["client_" + name] = value;
  }
  return out;
}

// A line that is longer than the terminal is wide could not be erased.
std::string Live::fitting_line(const Interval& interval) const {
  constexpr size_t usual = 80;
  const size_t columns = terminal_columns(terminal_);
  const size_t most = (columns > 0 ? columns : usual) - 1;
  std::string text = line(interval, device_ + " ");
  if (text.size() > most) text = line(interval, "");
  return text.substr(0, most);
}

void Live::show_line(const std::string& text) const {
  const std::string whole = "\r\033[K" + text;
  // If the terminal is gone, the measurement continues.
  (void)!::write(terminal_, whole.data(), whole.size());
}

}  // namespace urma::apps::perf
