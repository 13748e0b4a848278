// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "apps/common/captures.h"
#include "apps/urma_feed/backlog.h"
#include "apps/urma_feed/messages.h"
#include "apps/urma_feed/options.h"

namespace urma::apps::feed {

// Sends the messages of a backlog to one consumer, on a thread of its own, until the consumer has
// acknowledged all. If the consumer ends, the link looks for a new one, and sends it the messages
// that the old one had not acknowledged.
class Link {
 public:
  // How it ended.
  struct Verdict {
    uint64_t acknowledged = 0;  // messages
    uint64_t connected = 0;     // how often, beyond the first time
    uint64_t resent = 0;        // messages, which the old consumer may have written already
    Exit exit = Exit::ok;
    std::string error{};
  };

  Link(const Options& options, std::string host, size_t index, uint64_t feed);
  Link(const Link&) = delete;
  ~Link();

  // The body of its thread. Throws nothing but std::bad_alloc.
  void run(Backlog& backlog);
  // Wakes that thread; any thread may call it.
  void wake();
  // Any thread may call these two.
  bool over() const { return over_; }
  const std::string& host() const { return host_; }
  // Called after the thread has ended.
  const Verdict& verdict() const { return verdict_; }

 private:
  using Clock = std::chrono::steady_clock;
  // The library reads these until the work with this message has completed.
  struct Sending {
    Stamp stamp;
    Backlog::Message text;
  };
  struct Connection;

  void attempt(Backlog& backlog);
  void greet(Connection& connection);
  void post_some(Connection& connection, Backlog& backlog);
  void end(Connection& connection, uint64_t count);
  void take(Connection& connection, Backlog& backlog, const Completion& completion);
  void take_farewell(Connection& connection, const Backlog& backlog, std::string_view text);
  void turn(Connection& connection, Backlog& backlog);
  bool given_up();

  const Options& options_;
  const std::string host_;
  const size_t index_;
  const uint64_t feed_;
  const int wake_;
  std::atomic<bool> over_ = false;
  Verdict verdict_;
  uint64_t next_ = 0;          // the next message that is posted
  uint64_t sent_ = 0;          // no later message was ever posted
  uint64_t acknowledged_ = 0;  // the message that the consumer wants next
  bool reached_ = false;
  Clock::time_point patient_until_{};
  std::optional<Clock::time_point> leave_at_{};
};

}  // namespace urma::apps::feed
