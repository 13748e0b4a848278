// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_feed/consumer.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "apps/common/devices.h"
#include "apps/common/interrupt.h"
#include "apps/common/output.h"

namespace urma::apps::feed {
namespace {

using namespace std::chrono_literals;

// At most this many messages wait here. A producer that has sent more has to wait.
constexpr uint32_t permits = 1024;
// At most this many payloads wait here.
constexpr uint64_t buffers = 256;

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
      router_(
          [this](const Completion& arrival, uint64_t number) { handle_value(arrival, number); }),
      streams_(options.print),
      terminal_(!options.print && isatty(STDERR_FILENO) == 1) {
  router_.on(end_topic,
             [this](const Completion& arrival, uint64_t total) { end_producer(arrival, total); });
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
  // The works are acknowledgements. A producer that takes none must not keep its berth for long.
  Jetty jetty = must(device.jetty({.berths = permits,
                                   .receives = permits,
                                   .operation_timeout = 2s,
                                   .receiver_timeout = 2s}),
                     "a Jetty");
  must(jetty.fd(), "the device");
  const auto published = device.publish("urma_feed", lines, jetty, everyone());
  if (!published) throw apps::not_published(device, service(), published.error());
  sources_.push_back({text, std::move(device), std::move(lines),
                      std::make_unique_for_overwrite<std::byte[]>(buffers * max_send_bytes),
                      std::move(jetty)});
  for (uint64_t tag = 1; tag <= buffers; ++tag) {
    if (receive(sources_.back(), tag)) continue;
    throw Failure(Exit::error, "a buffer was refused. Fix: report this as a fault of liburma");
  }
}

bool Consumer::receive(Source& source, uint64_t tag) {
  const std::span<std::byte> buffer(source.buffers.get() + (tag - 1) * max_send_bytes,
                                    max_send_bytes);
  return source.jetty.receive(buffer, tag);
}

Origin Consumer::origin_of(const Completion& arrival) const {
  return {source_, arrival.from.index, arrival.from.generation, arrival.from_jetty};
}

void Consumer::say_where(Source& source) const {
  say(fmt::format("urma_feed at {}; feed it by: {}\n", to_string(source.device.endpoint()),
                  apps::command_to_reach(source.device, source.text, service())));
}

// With --print, standard output belongs to the payloads.
void Consumer::say(const std::string& text) const {
  if (options_.print) {
    apps::write_all(STDERR_FILENO, text);
  } else {
    apps::print(text);
  }
}

Exit Consumer::run() {
  for (Source& source : sources_) say_where(source);
  try {
    consume();
    acknowledge_the_rest();
  } catch (const Failure& failure) {
    say_goodbye({.exit = failure.exit(), .message = failure.what()});
    throw;
  }
  say_goodbye({.exit = Exit::peer_lost,
               .message = enough() ? "it has received what it was started for (--count, "
                                     "--producers). Fix: start a consumer again"
                                   : "it was stopped (Ctrl-C). Fix: start a consumer again"});
  if (terminal_) apps::write_all(STDERR_FILENO, "\r\033[K");
  print_table();
  if (!whole()) return Exit::wrong_bytes;
  return apps::interrupted() ? Exit::interrupted : Exit::ok;
}

void Consumer::consume() {
  while (!apps::interrupted() && !enough()) {
    if (poll_all()) continue;
    const bool asleep = std::ranges::all_of(sources_, [](Source& one) { return one.jetty.arm(); });
    if (asleep) sleep();
  }
}

// Returns whether anything came. After enough messages, or after Ctrl-C, the rest of what was
// polled is ignored, and not acknowledged.
bool Consumer::poll_all() {
  std::array<Completion, 64> out;
  bool any = false;
  for (source_ = 0; source_ < sources_.size(); ++source_) {
    const size_t count = sources_[source_].jetty.poll(out);
    for (const Completion& arrival : std::span(out).first(count)) {
      if (apps::interrupted() || enough()) break;
      handle(arrival);
    }
    any = any || count > 0;
  }
  flush();
  show();
  return any;
}

void Consumer::handle(const Completion& arrival) {
  if (arrival.status == Status::closed) {
    throw Failure(Exit::error, "the device was closed. Fix: report this as a fault of liburma");
  }
  if (arrival.operation != Operation::receive) return streams_.completed();
  if (arrival.tag != 0) {
    if (arrival.ok()) handle_text(arrival);
    (void)receive(sources_[source_], arrival.tag);  // refused only after close
  } else if (arrival.ok() && arrival.with_immediate) {
    router_.route(arrival);
  }
}

// All producers of a topic write to its line: it contains this value, or a later one.
void Consumer::handle_value(const Completion& arrival, uint64_t number) {
  const uint32_t topic = topic_in(arrival.immediate);
  std::byte* const line = sources_[source_].lines.bytes().data() + topic * line_bytes;
  topics_[topic].last =
      std::atomic_ref(*reinterpret_cast<uint64_t*>(line)).load(std::memory_order_acquire);
  producers_[origin_of(arrival)].came(number);
  Value value;
  std::memcpy(&value, line, sizeof value);
  const bool its_own = value.number == number && value.again == number;
  count_message(topic, its_own ? std::optional(value.posted) : std::nullopt);
}

void Consumer::handle_text(const Completion& arrival) {
  const std::span<const std::byte> text(
      sources_[source_].buffers.get() + (arrival.tag - 1) * max_send_bytes, arrival.bytes);
  if (!arrival.with_immediate) {
    return streams_.hello(origin_of(arrival), sources_[source_].device,
                          {reinterpret_cast<const char*>(text.data()), text.size()});
  }
  const Origin from = origin_of(arrival);
  streams_.payload(from, arrival.immediate, text);
  while (!enough()) {
    const auto delivered = streams_.deliver(from);
    if (!delivered) break;
    count_message(delivered->topic, delivered->posted);
  }
}

// `posted` is unknown if a later message has overwritten it.
void Consumer::count_message(uint32_t topic, const std::optional<Stamp>& posted) {
  if (woken_ && posted) wake_ups_.add(*posted, stamp_now());
  woken_ = false;
  ++topics_[topic].messages;
  last_ = Clock::now();
  if (messages_++ == 0) first_ = last_;
  const auto until = last_ + std::chrono::microseconds(options_.work_us);
  while (Clock::now() < until && !apps::interrupted()) {
  }
}

void Consumer::end_producer(const Completion& arrival, uint64_t total) {
  const Origin producer = origin_of(arrival);
  if (!streams_.ended(producer, total)) producers_[producer].ended(total);
  ++ended_;
}

std::vector<Jetty*> Consumer::jetties() {
  std::vector<Jetty*> all;
  for (Source& source : sources_) all.push_back(&source.jetty);
  return all;
}

void Consumer::flush() { streams_.flush(jetties()); }

// Handles completions of works, and ignores what arrives.
void Consumer::complete_some() {
  for (Source& source : sources_) {
    for (const Completion& done : source.jetty.wait(1ms)) {
      if (done.operation != Operation::receive) streams_.completed();
    }
  }
}

// Lets the last acknowledgements leave, so that the next consumer gets no message twice.
void Consumer::acknowledge_the_rest() {
  for (const auto until = Clock::now() + 300ms; !streams_.idle() && Clock::now() < until;) {
    complete_some();
    flush();
  }
}

// Tells producers of payloads why this consumer ends. Without it they learn only that a work
// failed.
void Consumer::say_goodbye(Failed why) {
  why.message.resize(std::min(why.message.size(), most_reason_bytes));
  farewell_ = to_text(failed_message(0, std::move(why)), wording());
  if (farewell_.size() > farewell_bytes) return;
  streams_.farewell(jetties(), farewell_);
  for (const auto until = Clock::now() + 300ms; !streams_.quiet() && Clock::now() < until;) {
    complete_some();
  }
}

bool Consumer::enough() const {
  return (options_.count && messages_ >= *options_.count) ||
         (options_.producers && ended_ >= *options_.producers && whole());
}

// Returns whether each message of the producers that have ended came once. Messages of a producer
// that has not ended may still be on their way.
bool Consumer::whole() const {
  return streams_.whole() && std::ranges::all_of(producers_, [](const auto& one) {
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
  const int ready = ::poll(events.data(), events.size(), terminal_ ? 1000 : -1);
  woken_ = ready > 0;
}

void Consumer::show() {
  if (!terminal_) return;
  const auto now = Clock::now();
  if (now - shown_at_ < 1s) return;
  const std::string rate = rate_text(messages_ - shown_, seconds_between(shown_at_, now));
  apps::write_all(STDERR_FILENO,
                  fmt::format("\r\033[K{} messages, {} a second, of {} producers, {} sleeps",
                              messages_, rate, producers_.size() + streams_.sums().feeds, sleeps_));
  shown_ = messages_;
  shown_at_ = now;
}

std::string Consumer::table_of_topics() const {
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
  return text;
}

std::string Consumer::lines_of_streams() const {
  const Streams::Sums sums = streams_.sums();
  std::string text;
  if (sums.feeds > 0) {
    text += fmt::format("payloads: {} messages, {} bytes, of {} producers\n", sums.messages,
                        sums.bytes, sums.feeds);
  }
  if (sums.before > 0) {
    text += fmt::format("{} messages before these were acknowledged by earlier consumers\n",
                        sums.before);
  }
  if (sums.repeated > 0) {
    text += fmt::format("{} messages arrived again and were dropped\n", sums.repeated);
  }
  if (sums.dropped > 0) {
    text += fmt::format("{} messages were not understood and dropped; the last one: {}\n",
                        sums.dropped, apps::printable(sums.last));
  }
  return text;
}

std::string Consumer::line_of_wake_ups() const {
  if (wake_ups_.count() == 0) return {};
  const auto us = [](uint64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1000; };
  std::string text = fmt::format(
      "wake-ups: {} messages found the consumer asleep; from post to handler, in us: p50 {:.1f}, "
      "p90 {:.1f}, p99 {:.1f}, p99.9 {:.1f}, max {:.1f}\n",
      wake_ups_.count(), us(wake_ups_.quantile(0.5)), us(wake_ups_.quantile(0.9)),
      us(wake_ups_.quantile(0.99)), us(wake_ups_.quantile(0.999)), us(wake_ups_.most()));
  if (wake_ups_.foreign() > 0) {
    text += fmt::format("{} more came from hosts with other clocks\n", wake_ups_.foreign());
  }
  return text;
}

void Consumer::print_table() const {
  const Streams::Sums sums = streams_.sums();
  uint64_t missing = sums.missing, repeated = 0;
  for (const auto& [who, tally] : producers_) {
    missing += tally.missing();
    repeated += tally.repeated();
  }
  std::string text = table_of_topics() + lines_of_streams() + line_of_wake_ups();
  text +=
      fmt::format("{} messages of {} producers ({} ended), {} missing, {} repeated, {} sleeps\n",
                  messages_, producers_.size() + sums.feeds, ended_, missing, repeated, sleeps_);
  const auto without_payload =
      std::ranges::count_if(producers_, [](const auto& one) { return !one.second.over(); });
  const uint64_t going_on = static_cast<uint64_t>(without_payload) + sums.going_on;
  if (going_on > 0) {
    text += fmt::format("{} {} not ended: {} last messages may be missing\n", going_on,
                        going_on == 1 ? "producer has" : "producers have",
                        going_on == 1 ? "its" : "their");
  }
  say(text);
}

}  // namespace urma::apps::feed
