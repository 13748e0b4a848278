// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cstdlib>

#include "apps/capi/eid.h"
#include "apps/capi/log.h"
#include "apps/capi/program.h"
#include "apps/common/interrupt.h"
#include "apps/common/output.h"
#include "apps/urma_ping/options.h"
#include "apps/urma_ping/pinger.h"
#include "apps/urma_ping/serving.h"
#include "apps/urma_ping/statistics.h"
#include "base/clock.h"

namespace urma::apps::ping {
namespace {

// A search may fail at once.
constexpr Duration look_again = std::chrono::milliseconds(100);

Duration duration(double seconds) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

// Sends one message after another, and prints what becomes of them.
class Run {
 public:
  explicit Run(const Options& options)
      : options_(options), name_(capi::to_text(*options.eid)), pinger_(options) {}

  Exit run();

 private:
  bool step(uint64_t number);
  Pinger::Answer exchange(uint64_t number);
  void report(uint64_t number, Pinger::Answer answer, Duration round_trip);
  // Sleeps until the next message is due. Returns false if there is none.
  bool rest();
  // Sleeps until then, or until the program is interrupted.
  void sleep_until(Time then) const;
  std::optional<Time> earlier(Time when) const;
  void say(const std::string& line) const {
    if (!options_.quiet) print(line);
  }

  const Options& options_;
  const std::string name_;
  Pinger pinger_;
  Statistics statistics_;
  const Time began_ = read_clock();
  Time sent_at_{};  // the last message
  bool found_ = false;
  bool wrong_ = false;
  std::string why_;  // the last reason of a message without answer
};

// Returns the deadline if that is earlier.
std::optional<Time> Run::earlier(Time when) const {
  if (!options_.deadline_seconds) return when;
  return std::min(when, began_ + duration(*options_.deadline_seconds));
}

void Run::sleep_until(Time then) const {
  pollfd stop{interrupt_descriptor(), POLLIN, 0};
  while (!interrupted()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(then - read_clock()).count();
    if (left <= 0) break;
    ::poll(&stop, 1, static_cast<int>(std::min<int64_t>(left, 1000)));
  }
}

bool Run::rest() {
  sleep_until(*earlier(read_clock() + duration(options_.interval_seconds)));
  const bool late =
      options_.deadline_seconds && read_clock() >= began_ + duration(*options_.deadline_seconds);
  return !interrupted() && !late;
}

// The round trip does not include the time that it takes to find the process.
Pinger::Answer Run::exchange(uint64_t number) {
  sent_at_ = read_clock();
  std::optional<Time> end;
  if (options_.timeout_seconds > 0) {
    end = earlier(sent_at_ + duration(options_.timeout_seconds));
  } else if (options_.deadline_seconds) {
    end = began_ + duration(*options_.deadline_seconds);
  }
  while (!pinger_.find(why_)) {
    const Time again = read_clock() + look_again;
    sleep_until(end ? std::min(*end, again) : again);
    if (interrupted()) return Pinger::Answer::interrupted;
    if (end && read_clock() >= *end) return Pinger::Answer::none;
  }
  found_ = true;
  sent_at_ = read_clock();
  return pinger_.exchange(number, end, why_);
}

void Run::report(uint64_t number, Pinger::Answer answer, Duration round_trip) {
  switch (answer) {
    case Pinger::Answer::arrived:
      statistics_.note_answer(round_trip);
      return say(fmt::format("{} bytes from {}: seq={} time={:.3f} ms\n", options_.bytes, name_,
                             number, milliseconds(round_trip)));
    case Pinger::Answer::wrong_bytes:
      wrong_ = true;
      return say(fmt::format("From {} seq={}: the answer has other bytes\n", name_, number));
    default:
      say(fmt::format("Request timeout for seq={}\n", number));
      if (options_.verbose && !why_.empty()) say("  " + printable(why_) + "\n");
  }
}

bool Run::step(uint64_t number) {
  why_.clear();
  statistics_.note_sent();
  const Pinger::Answer answer = exchange(number);
  if (answer == Pinger::Answer::interrupted) return false;
  report(number, answer, read_clock() - sent_at_);
  return true;
}

Exit Run::run() {
  print(fmt::format("URMA_PING {} {} bytes of data.\n", name_, options_.bytes));
  if (options_.verbose) {
    say(fmt::format("from {} ({})\n", capi::to_text(pinger_.source()), pinger_.device()));
  }
  const uint64_t count = options_.count.value_or(UINT32_MAX);
  for (uint64_t number = 1; step(number) && number < count && rest();) ++number;
  print("\n--- ping statistics ---\n" + statistics_.text(read_clock() - began_));
  if (wrong_)
    throw Failure(Exit::wrong_bytes,
                  "an answer had other bytes than the message. Fix: "
                  "report this as a fault of liburma");
  if (!found_ && !interrupted()) throw Failure(Exit::error, why_);
  return Exit::ok;
}

Exit run(const Options& options) {
  capi::keep_log();
  urma_init(nullptr);
  if (options.mode == Options::Mode::serve) return serve(options);
  unsetenv("URMA_PING");  // this process would answer itself
  return Run(options).run();
}

}  // namespace
}  // namespace urma::apps::ping

int main(int count, char** arguments) {
  namespace program = urma::apps::ping;
  return urma::apps::capi::run_program<program::Options>({.name = "urma_ping",
                                                          .version = {},
                                                          .help = program::help,
                                                          .parse = program::parse_options,
                                                          .run = program::run},
                                                         count, arguments);
}
