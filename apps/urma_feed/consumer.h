#pragma once

#include <array>
#include <chrono>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "apps/common/captures.h"
#include "apps/urma_feed/options.h"
#include "apps/urma_feed/router.h"
#include "apps/urma_feed/tally.h"

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
    Jetty jetty;
  };
  // One Jetty of one incarnation of a process, and the device through which it sends.
  using Producer = std::tuple<size_t, uint32_t, uint32_t, JettyId>;
  struct Topic {
    uint64_t messages = 0;
    uint64_t last = 0;  // the last value
  };

  void open(const std::string& text);
  void say_where(Source& source) const;
  bool poll_all();
  bool enough() const;
  bool whole() const;
  void sleep();
  void show();
  void print_table() const;

  const Options& options_;
  apps::Captures captures_{"urma_feed"};  // destroyed after the devices
  std::vector<Source> sources_;
  size_t source_ = 0;  // the source whose arrivals are being routed
  Router router_;
  std::array<Topic, topics> topics_{};
  std::map<Producer, Tally> producers_;
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
