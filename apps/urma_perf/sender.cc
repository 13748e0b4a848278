// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_perf/sender.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "apps/common/interrupt.h"
#include "apps/common/output.h"
#include "apps/common/program.h"
#include "apps/urma_perf/client.h"
#include "apps/urma_perf/machine.h"

namespace urma::apps::perf {
namespace {

using nlohmann::json;

// A sender that is not ready for so long is lost.
constexpr int64_t ready_in = 60 * second;

json to_json(const Histogram& histogram) {
  json buckets = json::array();
  histogram.for_each([&](uint64_t low, uint64_t, uint64_t count) {
    buckets.push_back({low, count});
  });
  return {{"max", histogram.max()}, {"buckets", buckets}};
}

// The largest value is recorded itself, and the others as the least value of their bucket, so that
// the histogram is the same.
Histogram histogram_of(const json& in) {
  Histogram out;
  const uint64_t most = in.at("max");
  for (const json& one : in.at("buckets")) {
    const uint64_t value = one.at(0);
    const bool last = Histogram::bucket(value) == Histogram::bucket(most);
    out.record(last ? most : value, one.at(1));
  }
  return out;
}

json message_of(const Result& result) {
  if (result.rounds.empty()) return nullptr;
  const Round& round = result.rounds.front();
  return {{"begin", round.begin},
          {"seconds", round.seconds},
          {"messages", round.messages},
          {"unsent", round.unsent},
          {"messages_per_second", round.messages_per_second},
          {"waited_percent", round.waited_percent},
          {"device", result.device},
          {"mapped", result.mapped},
          {"wrong", result.verdict.wrong},
          {"first_wrong", printable(result.verdict.first)},
          {"times", to_json(round.times)}};
}

Result result_of(const json& in, const Case& what) {
  Result result;
  result.what = what;
  result.device = in.at("device");
  result.mapped = in.at("mapped");
  result.verdict.wrong = in.at("wrong");
  result.verdict.first = in.at("first_wrong");
  Round round{.begin = in.at("begin"),
              .seconds = in.at("seconds"),
              .messages = in.at("messages"),
              .unsent = in.at("unsent"),
              .messages_per_second = in.at("messages_per_second"),
              .waited_percent = in.at("waited_percent"),
              .times = histogram_of(in.at("times"))};
  round.p50_us = static_cast<double>(round.times.percentile(0.5)) / what.test->units_per_us();
  result.times = round.times;
  result.rounds.push_back(std::move(round));
  return result;
}

// Says that this sender is ready, and waits for the others. The device runs meanwhile.
void wait_for_others(int channel, Link& link) {
  if (!write_all(channel, "r")) _exit(static_cast<int>(Exit::error));
  for (pollfd start{channel, POLLIN, 0}; !interrupted();) {
    if (::poll(&start, 1, 1) > 0) {
      char go = 0;
      // Another sender has failed, and the parent ends.
      if (::read(channel, &go, 1) != 1) _exit(static_cast<int>(Exit::peer_lost));
      return;
    }
    link.keep_alive();
  }
}

}  // namespace

Sender::Sender(const Options& options, const Place& place, const Case& what) : what_(what) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    throw Failure(Exit::error,
                  fmt::format("starting a sender: making a pair of sockets: {}. Fix: close some "
                              "files, or raise the limit (ulimit -n 4096)",
                              std::strerror(errno)));
  }
  std::fflush(stdout);
  const pid_t parent = getpid();
  process_ = fork();
  if (process_ == 0) {
    close(ends[0]);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    // Ctrl-C is sent to the whole foreground group. The parent passes it on, once.
    setpgid(0, 0);
    measure(options, place, what, ends[1]);
  }
  const int why = errno;
  close(ends[1]);
  channel_ = ends[0];
  if (process_ > 0) return;
  close(channel_);
  throw Failure(Exit::error, fmt::format("starting a sender: {}. Fix: end some processes, or raise "
                                         "their limit (ulimit -u 4096)",
                                         std::strerror(why)));
}

Sender::~Sender() {
  if (channel_ >= 0) close(channel_);
  if (process_ <= 0) return;
  kill(process_, SIGKILL);
  waitpid(process_, nullptr, 0);
}

// Ends the process without destroying what it has of its parent.
void Sender::measure(const Options& options, const Place& place, const Case& what, int parent) {
  Options mine = options;
  mine.form = Options::Form::json;  // the parent shows the progress
  mine.test = what.test;
  const int exit = run_program("urma_perf", [&] {
    if (place.processor >= 0) pin(place.processor);
    Client client(mine, place.device, place.host, {});
    Schedule schedule = schedule_for(mine);
    schedule.progress = place.progress;
    schedule.before_rounds = [parent](Link& link) { wait_for_others(parent, link); };
    const Result result = client.run(what, schedule);
    return write_all(parent, message_of(result).dump()) ? Exit::ok : Exit::error;
  });
  _exit(exit);
}

bool Sender::await_ready() {
  const int64_t until = now() + ready_in;
  for (pollfd ready{channel_, POLLIN, 0}; now() < until && !interrupted();) {
    if (::poll(&ready, 1, 100) <= 0) continue;
    char word = 0;
    return ::read(channel_, &word, 1) == 1;
  }
  return false;
}

void Sender::end() {
  int status = 0;
  for (const int64_t until = now() + second; process_ > 0; usleep(1000)) {
    if (now() > until) kill(process_, SIGKILL);
    const pid_t got = waitpid(process_, &status, WNOHANG);
    if (got == 0) continue;
    process_ = -1;
    exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : static_cast<int>(Exit::error);
  }
}

void Sender::start() { (void)write_all(channel_, "g"); }

bool Sender::await_result() const {
  pollfd readable{channel_, POLLIN, 0};
  return ::poll(&readable, 1, 100) > 0;
}

void Sender::interrupt() {
  if (interrupted_ || process_ <= 0) return;
  interrupted_ = true;
  kill(process_, SIGINT);
}

std::optional<Result> Sender::result() {
  std::string text;
  char buffer[4096];
  for (ssize_t got = 1; got > 0 || (got < 0 && errno == EINTR);) {
    got = ::read(channel_, buffer, sizeof buffer);
    if (got > 0) text.append(buffer, static_cast<size_t>(got));
  }
  int status = 0;
  while (waitpid(process_, &status, 0) < 0 && errno == EINTR) continue;
  process_ = -1;
  exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : static_cast<int>(Exit::error);
  if (exit_code_ != static_cast<int>(Exit::ok) || text.empty() || text == "null") {
    return std::nullopt;
  }
  return result_of(json::parse(text), what_);
}

}  // namespace urma::apps::perf
