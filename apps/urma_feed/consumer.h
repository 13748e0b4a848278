// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/common/captures.h"
#include "apps/urma_feed/options.h"
#include "apps/urma_feed/router.h"
#include "apps/urma_feed/streams.h"
#include "apps/urma_feed/tally.h"
#include "apps/urma_feed/wake_ups.h"

namespace urma::apps::feed {

// Receives messages on one thread, which sleeps at the descriptors of all its devices until one has
// completions.
class Consumer {
 public:
  explicit Consumer(const Options& options);
  Consumer(const Consumer&) = delete;

  // Runs until enough messages have come or Ctrl-C, and then prints the table.
  Exit run();

 private:
  using Clock = std::chrono::steady_clock;
  // One device, and the messages that were received there.
  struct Source {
    std::string text;
    Device device;
    Segment lines;
    // Messages arrive here: buffer i, from 0, has tag i + 1.
    std::unique_ptr<std::byte[]> buffers;
    Jetty jetty;
  };
  struct Topic {
    uint64_t messages = 0;
    uint64_t last = 0;  // the last value
  };

  void open(const std::string& text);
  void say(const std::string& text) const;
  void say_where(Source& source) const;
  bool poll_all();
  void handle(const Completion& arrival);
  void handle_value(const Completion& arrival, uint64_t number);
  void handle_text(const Completion& arrival);
  void count_message(uint32_t topic, const std::optional<Stamp>& posted);
  void end_producer(const Completion& arrival, uint64_t total);
  bool receive(Source& source, uint64_t tag);
  Origin origin_of(const Completion& arrival) const;
  void flush();
  std::vector<Jetty*> jetties();
  void consume();
  void complete_some();
  void acknowledge_the_rest();
  void say_goodbye(Failed why);
  bool enough() const;
  bool whole() const;
  void sleep();
  void show();
  void print_table() const;
  std::string table_of_topics() const;
  std::string lines_of_streams() const;
  std::string line_of_wake_ups() const;

  const Options& options_;
  apps::Captures captures_{"urma_feed"};  // destroyed after the devices
  std::string farewell_;                  // the library reads it while the devices live
  std::vector<Source> sources_;
  size_t source_ = 0;  // the source whose arrivals are being routed
  Router router_;
  std::array<Topic, topics> topics_{};
  std::map<Origin, Tally> producers_;  // without payloads
  Streams streams_;
  WakeUps wake_ups_;
  bool woken_ = false;  // the next message is the one that has woken this consumer
  uint64_t messages_ = 0;
  uint64_t ended_ = 0;   // producers that have ended
  uint64_t sleeps_ = 0;  // sleeps since the first message
  uint64_t shown_ = 0;
  const bool terminal_;
  Clock::time_point first_{};  // when the first message came
  Clock::time_point last_{};
  Clock::time_point shown_at_ = Clock::now();
};

}  // namespace urma::apps::feed
