// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_feed/backlog.h"

#include <algorithm>
#include <chrono>

namespace urma::apps::feed {

Backlog::Backlog(std::vector<std::function<void()>> wake)
    : wake_(std::move(wake)), acknowledged_(wake_.size()) {}

bool Backlog::add(std::string message, const std::function<bool()>& give_up) {
  {
    std::unique_lock lock(mutex_);
    const auto has_room = [this] {
      return messages_.size() < most_messages && bytes_ < most_bytes;
    };
    while (!room_.wait_for(lock, std::chrono::milliseconds(100), has_room)) {
      lock.unlock();
      if (give_up()) return false;
      lock.lock();
    }
    bytes_ += message.size();
    messages_.push_back(std::make_shared<const std::string>(std::move(message)));
  }
  for (const auto& wake : wake_) wake();
  return true;
}

void Backlog::end() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  for (const auto& wake : wake_) wake();
}

bool Backlog::ended() const {
  const std::lock_guard lock(mutex_);
  return ended_;
}

uint64_t Backlog::count() const {
  const std::lock_guard lock(mutex_);
  return first_ + messages_.size();
}

Backlog::Message Backlog::at(uint64_t number) const {
  const std::lock_guard lock(mutex_);
  if (number < first_ || number - first_ >= messages_.size()) return nullptr;
  return messages_[number - first_];
}

void Backlog::acknowledge(size_t consumer, uint64_t number) {
  const std::lock_guard lock(mutex_);
  acknowledged_[consumer] = std::max(acknowledged_[consumer], number);
  trim();
}

void Backlog::leave(size_t consumer) { acknowledge(consumer, UINT64_MAX); }

void Backlog::trim() {
  const uint64_t least = *std::ranges::min_element(acknowledged_);
  while (first_ < least && !messages_.empty()) {
    bytes_ -= messages_.front()->size();
    messages_.pop_front();
    ++first_;
  }
  room_.notify_all();
}

}  // namespace urma::apps::feed
