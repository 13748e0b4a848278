// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_feed/producer.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>

#include "apps/common/captures.h"
#include "apps/common/devices.h"
#include "apps/common/interrupt.h"
#include "apps/common/output.h"
#include "apps/urma_feed/immediates.h"
#include "apps/urma_feed/messages.h"
#include "urma/urma.hpp"

namespace urma::apps::feed {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr uint32_t berths = 128;
constexpr auto goodbye = 2s;  // after Ctrl-C, the time for a consumer that is slow or stopped

apps::Service service_of(const Options& options) {
  apps::Service service = urma::apps::feed::service();
  if (!options.devices.empty()) service.device = options.devices[0];
  return service;
}

// If the consumer takes no message for longer than the receiver time-out, works complete with an
// error, and so the producer learns it.
class Producer {
 public:
  explicit Producer(const Options& options)
      : options_(options),
        device_(captures_.watch(apps::open_device(options.devices.empty()
                                                      ? apps::device_towards(options.hosts[0])
                                                      : options.devices[0]))),
        consumer_(apps::find_server(device_, options.hosts[0], service_of(options))),
        jetty_(must(device_.jetty({.berths = berths}), "a Jetty")) {}

  Producer(const Producer&) = delete;

  Exit run() {
    const auto began = Clock::now();
    while (!apps::interrupted() && (!options_.count || sent_ < *options_.count)) {
      if (wait_for_turn(began)) continue;
      const auto topic = static_cast<uint32_t>(options_.topics[sent_ % options_.topics.size()]);
      if (tell(topic, sent_)) ++sent_;
    }
    bool told = false;
    while (!told && !given_up()) told = tell(end_topic, sent_);
    while (outstanding_ > 0 && !given_up()) take(100ms);
    const double seconds =
        std::max(std::chrono::duration<double>(Clock::now() - began).count(), 1e-9);
    apps::print(fmt::format("{} messages in {:.1f} s, {:.0f} a second, {} waits for the consumer\n",
                            sent_, seconds, static_cast<double>(sent_) / seconds, waits_));
    if (outstanding_ > 0) {
      apps::print_error(
          fmt::format("urma_feed: the consumer at {} may lack the last {} messages, and the "
                      "message that ends the feed: it did not take them within 2 s of Ctrl-C. Fix: "
                      "check whether the consumer is stopped or slow",
                      options_.hosts[0], outstanding_));
    }
    return apps::interrupted() ? Exit::interrupted : Exit::ok;
  }

 private:
  // Returns whether to end although the consumer has not taken all messages.
  bool given_up() {
    if (!apps::interrupted()) return false;
    if (!leave_at_) leave_at_ = Clock::now() + goodbye;
    return Clock::now() > *leave_at_;
  }

  // Returns true if the next message is not due yet.
  bool wait_for_turn(Clock::time_point began) {
    if (options_.rate == 0) return false;
    const auto due = began + std::chrono::nanoseconds(sent_ * 1'000'000'000 / options_.rate);
    const auto left = due - Clock::now();
    if (left <= 0ns) return false;
    take(std::min<std::chrono::nanoseconds>(left, 100ms));
    return true;
  }

  // The value is copied into the work, so no buffer is borrowed. Returns false if no berth is
  // vacant, as happens when the consumer is slow.
  bool tell(uint32_t topic, uint64_t number) {
    const Value value{.number = number, .posted = stamp_now(), .again = number};
    const auto bytes = std::as_bytes(std::span(&value, 1));
    const Work work = urma::write(bytes, consumer_.segment, topic * line_bytes)
                          .to(consumer_.jetty)
                          .immediate(immediate_of(topic, number))
                          .inline_data();
    if (jetty_.post(work) == 1) {
      ++outstanding_;
      return true;
    }
    ++waits_;
    take(100ms);
    return false;
  }

  void take(Duration limit) {
    for (const Completion& done : jetty_.wait(limit)) {
      --outstanding_;
      if (!done.ok()) throw apps::failed_work("telling the consumer", done.status);
    }
  }

  const Options& options_;
  apps::Captures captures_{"urma_feed"};  // destroyed after the devices
  Device device_;
  Imported consumer_;
  Jetty jetty_;
  uint64_t sent_ = 0;
  uint64_t outstanding_ = 0;
  uint64_t waits_ = 0;
  std::optional<Clock::time_point> leave_at_;
};

}  // namespace

Exit produce(const Options& options) { return Producer(options).run(); }

}  // namespace urma::apps::feed
