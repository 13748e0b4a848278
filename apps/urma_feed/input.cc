// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_feed/input.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "apps/common/interrupt.h"
#include "apps/common/output.h"
#include "apps/urma_feed/backlog.h"
#include "apps/urma_feed/link.h"
#include "apps/urma_feed/splitter.h"

namespace urma::apps::feed {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using Links = std::vector<std::unique_ptr<Link>>;

// Reads standard input into a backlog.
class Reader {
 public:
  Reader(const Options& options, Backlog& backlog, const Links& links)
      : options_(options), backlog_(backlog), links_(links), splitter_(options.record_bytes) {}

  // Reads until the input ends, enough messages were read, all consumers are lost, or Ctrl-C.
  void run() {
    std::array<char, 64 * 1024> buffer;
    while (!over()) {
      if (!await_input()) continue;
      const ssize_t got = ::read(STDIN_FILENO, buffer.data(), buffer.size());
      if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (got < 0) {
        throw Failure(Exit::error, fmt::format("reading standard input: {}. Fix: give it a pipe or "
                                               "a file that can be read",
                                               std::strerror(errno)));
      }
      splitter_.add({buffer.data(), static_cast<size_t>(got)});
      while (!over()) {
        auto message = splitter_.next();
        if (!message) break;
        add(*std::move(message));
      }
      if (got > 0) continue;
      if (over()) return;
      if (auto message = splitter_.rest()) add(*std::move(message));
      return;
    }
  }

  uint64_t bytes() const { return bytes_; }

 private:
  bool abandoned() const {
    return apps::interrupted() ||
           std::ranges::all_of(links_, [](const auto& link) { return link->over(); });
  }
  bool over() const { return abandoned() || (options_.count && count_ >= *options_.count); }

  // Returns false if there is no input yet.
  bool await_input() const {
    pollfd events[] = {{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0},
                       {.fd = apps::interrupt_descriptor(), .events = POLLIN, .revents = 0}};
    return ::poll(events, std::size(events), 100) > 0 && events[0].revents != 0;
  }

  void add(std::string message) {
    if (options_.rate > 0) {
      const auto due = began_ + std::chrono::nanoseconds(count_ * 1'000'000'000 / options_.rate);
      while (Clock::now() < due && !abandoned()) {
        std::this_thread::sleep_for(std::min<Clock::duration>(due - Clock::now(), 100ms));
      }
    }
    const size_t size = message.size();
    if (!backlog_.add(std::move(message), [this] { return abandoned(); })) return;
    ++count_;
    bytes_ += size;
  }

  const Options& options_;
  Backlog& backlog_;
  const Links& links_;
  Splitter splitter_;
  uint64_t count_ = 0;
  uint64_t bytes_ = 0;
  const Clock::time_point began_ = Clock::now();
};

std::string summary(const Link& link, uint64_t count) {
  const Link::Verdict& verdict = link.verdict();
  std::string text =
      fmt::format("{}: {} of {} messages acknowledged", link.host(), verdict.acknowledged, count);
  if (verdict.connected > 0) {
    text += fmt::format(
        "; {} a new connection, {} messages sent again, which an earlier consumer may have written",
        verdict.connected == 1 ? "once" : fmt::format("{} times", verdict.connected),
        verdict.resent);
  }
  if (verdict.acknowledged < count) {
    text += fmt::format("; NOT DELIVERED: {}", count - verdict.acknowledged);
  }
  return text + "\n";
}

// Reads the input while the links send it.
class Feed {
 public:
  explicit Feed(const Options& options) {
    const uint64_t number = std::random_device()() | uint64_t{std::random_device()()} << 32;
    std::vector<std::function<void()>> wakes;
    for (const std::string& host : options.hosts) {
      links_.push_back(std::make_unique<Link>(options, host, links_.size(), number));
      wakes.emplace_back([link = links_.back().get()] { link->wake(); });
    }
    backlog_ = std::make_unique<Backlog>(std::move(wakes));
    reader_ = std::make_unique<Reader>(options, *backlog_, links_);
  }

  Exit run() {
    const auto began = Clock::now();
    std::optional<Failure> failed = read_while_sending();
    const double seconds =
        std::max(std::chrono::duration<double>(Clock::now() - began).count(), 1e-9);
    const uint64_t count = backlog_->count();
    Exit exit = failed ? failed->exit() : Exit::ok;
    std::string text = fmt::format("{} messages, {} bytes in {:.1f} s, {:.0f} a second\n", count,
                                   reader_->bytes(), seconds, static_cast<double>(count) / seconds);
    for (const auto& link : links_) {
      text += summary(*link, count);
      const Link::Verdict& verdict = link->verdict();
      if (verdict.exit == Exit::ok) continue;
      apps::print_error(apps::printable("urma_feed: " + link->host() + ": " + verdict.error));
      if (exit == Exit::ok) exit = verdict.exit;
    }
    apps::print(text);
    if (failed) throw *failed;
    return apps::interrupted() ? Exit::interrupted : exit;
  }

 private:
  std::optional<Failure> read_while_sending() {
    std::vector<std::jthread> threads;
    for (const auto& link : links_) threads.emplace_back([&] { link->run(*backlog_); });
    std::optional<Failure> failed;
    try {
      reader_->run();
    } catch (const Failure& failure) {
      failed = failure;
    }
    backlog_->end();
    threads.clear();
    return failed;
  }

  Links links_;
  std::unique_ptr<Backlog> backlog_;
  std::unique_ptr<Reader> reader_;
};

}  // namespace

Exit produce_input(const Options& options) { return Feed(options).run(); }

}  // namespace urma::apps::feed
