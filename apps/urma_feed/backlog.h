// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace urma::apps::feed {

// The messages that were read and that not every consumer has acknowledged. One thread adds
// messages; a thread for each consumer takes them. The backlog is bounded: while a consumer is slow
// or away, `add` waits, so no message is lost and the input waits, too.
class Backlog {
 public:
  using Message = std::shared_ptr<const std::string>;
  static constexpr size_t most_messages = 4096;
  static constexpr size_t most_bytes = 64 << 20;

  // `wake[i]` wakes the thread of consumer i. It is called without the lock.
  explicit Backlog(std::vector<std::function<void()>> wake);

  // Waits while the backlog is full, until `give_up` returns true, which it is asked 10 times a
  // second. Returns whether the message was added.
  bool add(std::string message, const std::function<bool()>& give_up);
  // No message will be added.
  void end();
  // Returns whether `end` was called; then `count` is final.
  bool ended() const;
  // Returns the number of all messages that were added.
  uint64_t count() const;

  // Returns message `number`; null if it has not been added. It must not have been acknowledged by
  // this consumer.
  Message at(uint64_t number) const;
  // Consumer i wants message `number` next.
  void acknowledge(size_t consumer, uint64_t number);
  // Consumer i is lost: messages no longer wait for it.
  void leave(size_t consumer);

 private:
  void trim();

  const std::vector<std::function<void()>> wake_;
  mutable std::mutex mutex_;
  std::condition_variable room_;
  std::deque<Message> messages_;
  uint64_t first_ = 0;  // the number of the first of them
  size_t bytes_ = 0;
  bool ended_ = false;
  std::vector<uint64_t> acknowledged_;  // of each consumer; the largest number if it is lost
};

}  // namespace urma::apps::feed
