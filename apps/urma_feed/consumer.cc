#include "apps/urma_feed/consumer.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "apps/common/devices.h"
#include "apps/common/interrupt.h"
#include "apps/common/output.h"

namespace urma::apps::feed {
namespace {

using namespace std::chrono_literals;

// At most this many messages wait here. A producer that has sent more has to wait.
constexpr uint32_t permits = 1024;

// No rate is printed for a shorter time.
constexpr double least_seconds = 0.1;

double seconds_between(std::chrono::steady_clock::time_point from,
                       std::chrono::steady_clock::time_point to) {
  return std::max(std::chrono::duration<double>(to - from).count(), 1e-9);
}

std::string rate_text(uint64_t messages, double seconds) {
  if (seconds < least_seconds) return "-";
  return fmt::format("{:.0f}", static_cast<double>(messages) / seconds);
}

}  // namespace

Consumer::Consumer(const Options& options)
    : options_(options),
      router_([this](const Completion& arrival, uint64_t number) {
        Topic& topic = topics_[topic_in(arrival.immediate)];
        ++topic.messages;
        // All producers of a topic write to this line: it contains the value of this message, or of
        // a later one.
        auto* const line = reinterpret_cast<uint64_t*>(sources_[source_].lines.bytes().data() +
                                                       topic_in(arrival.immediate) * line_bytes);
        topic.last = std::atomic_ref(*line).load(std::memory_order_acquire);
        producers_[{source_, arrival.from.index, arrival.from.generation, arrival.from_jetty}].came(
            number);
        last_ = Clock::now();
        if (messages_++ == 0) first_ = last_;
        const auto until = last_ + std::chrono::microseconds(options_.work_us);
        while (Clock::now() < until && !apps::interrupted()) {
        }
      }),
      terminal_(isatty(STDERR_FILENO) == 1) {
  router_.on(end_topic, [this](const Completion& arrival, uint64_t total) {
    producers_[{source_, arrival.from.index, arrival.from.generation, arrival.from_jetty}].ended(
        total);
    ++ended_;
  });
  // A device that cannot be opened ends the program only if it was named, or is the only one.
  // Otherwise the failure is printed.
  const bool named = !options.devices.empty();
  std::optional<Failure> failed;
  std::vector<std::string> without;
  for (const std::string& text : named ? options.devices : apps::devices_of_this_host()) {
    try {
      open(text);
    } catch (const Failure& failure) {
      if (named) throw;
      if (!failed) failed = failure;
      without.push_back(fmt::format("urma_feed: without {}: {}", text, failure.what()));
    }
  }
  if (sources_.empty()) throw *failed;
  for (const std::string& one : without) apps::print_error(one);
}

void Consumer::open(const std::string& text) {
  Device device = captures_.watch(apps::open_device(text));
  Segment lines = must(device.allocate(topics * line_bytes), "memory for values");
  Jetty jetty = must(device.jetty({.berths = 0, .receives = permits}), "a Jetty");
  must(jetty.fd(), "the device");
  const auto published = device.publish("urma_feed", lines, jetty, everyone());
  if (!published) throw apps::not_published(device, service(), published.error());
  sources_.push_back({text, std::move(device), std::move(lines), std::move(jetty)});
}

void Consumer::say_where(Source& source) const {
  apps::print(fmt::format("urma_feed at {}; feed it by: {}\n", to_string(source.device.endpoint()),
                          apps::command_to_reach(source.device, source.text, service())));
}

Exit Consumer::run() {
  for (Source& source : sources_) say_where(source);
  while (!apps::interrupted() && !enough()) {
    if (poll_all()) continue;
    const bool asleep = std::ranges::all_of(sources_, [](Source& one) { return one.jetty.arm(); });
    if (asleep) sleep();
  }
  if (terminal_) apps::write_all(STDERR_FILENO, "\r\033[K");
  print_table();
  if (!whole()) return Exit::wrong_bytes;
  return apps::interrupted() ? Exit::interrupted : Exit::ok;
}

// Returns whether anything came. After enough messages, or after Ctrl-C, the rest of what was
// polled is ignored.
bool Consumer::poll_all() {
  std::array<Completion, 64> out;
  bool any = false;
  for (source_ = 0; source_ < sources_.size(); ++source_) {
    const size_t count = sources_[source_].jetty.poll(out);
    for (const Completion& arrival : std::span(out).first(count)) {
      if (apps::interrupted() || enough()) return true;
      if (arrival.status == Status::closed) {
        throw Failure(Exit::error, "the device was closed. Fix: report this as a fault of liburma");
      }
      if (arrival.ok() && arrival.with_immediate) router_.route(arrival);
    }
    any = any || count > 0;
  }
  show();
  return any;
}

bool Consumer::enough() const {
  return (options_.count && messages_ >= *options_.count) ||
         (options_.producers && ended_ >= *options_.producers && whole());
}

// Returns whether each message of the producers that have ended came once. Messages of a producer
// that has not ended may still be on their way.
bool Consumer::whole() const {
  return std::ranges::all_of(producers_, [](const auto& one) {
    const Tally& tally = one.second;
    return tally.repeated() == 0 && (!tally.over() || tally.missing() == 0);
  });
}

void Consumer::sleep() {
  std::vector<pollfd> events = {
      {.fd = apps::interrupt_descriptor(), .events = POLLIN, .revents = 0}};
  for (Source& source : sources_) {
    events.push_back({.fd = *source.jetty.fd(), .events = POLLIN, .revents = 0});
  }
  sleeps_ += messages_ > 0;
  ::poll(events.data(), events.size(), terminal_ ? 1000 : -1);
}

void Consumer::show() {
  if (!terminal_) return;
  const auto now = Clock::now();
  if (now - shown_at_ < 1s) return;
  const std::string rate = rate_text(messages_ - shown_, seconds_between(shown_at_, now));
  apps::write_all(STDERR_FILENO,
                  fmt::format("\r\033[K{} messages, {} a second, of {} producers, {} sleeps",
                              messages_, rate, producers_.size(), sleeps_));
  shown_ = messages_;
  shown_at_ = now;
}

void Consumer::print_table() const {
  const double seconds = seconds_between(first_, last_);
  std::string text;
  if (messages_ > 0)
    text +=
        fmt::format("{:>5} {:>12} {:>12} {:>20}\n", "topic", "messages", "a second", "last value");
  for (uint32_t i = 0; i < topics; ++i) {
    const Topic& topic = topics_[i];
    if (topic.messages == 0) continue;
    text += fmt::format("{:>5} {:>12} {:>12} {:>20}\n", i, topic.messages,
                        rate_text(topic.messages, seconds), topic.last);
  }
  uint64_t missing = 0, repeated = 0;
  for (const auto& [who, tally] : producers_) {
    missing += tally.missing();
    repeated += tally.repeated();
  }
  text +=
      fmt::format("{} messages of {} producers ({} ended), {} missing, {} repeated, {} sleeps\n",
                  messages_, producers_.size(), ended_, missing, repeated, sleeps_);
  const auto going_on =
      std::ranges::count_if(producers_, [](const auto& one) { return !one.second.over(); });
  if (going_on > 0) {
    text += fmt::format("{} {} not ended: {} last messages may be missing\n", going_on,
                        going_on == 1 ? "producer has" : "producers have",
                        going_on == 1 ? "its" : "their");
  }
  apps::print(text);
}

}  // namespace urma::apps::feed
