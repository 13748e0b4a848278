// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sched.h>

#include <atomic>
#include <cstdint>

namespace urma::umdk {

// A lock for the few instructions around a post or a poll, during which no thread sleeps.
class SpinLock {
 public:
  // Does nothing unless it is `needed`: the program may promise that one thread at a time comes.
  class Held {
   public:
    Held(SpinLock& lock, bool needed) : lock_(needed ? &lock : nullptr) {
      if (lock_ != nullptr) lock_->take();
    }
    ~Held() {
      if (lock_ != nullptr) lock_->release();
    }
    Held(const Held&) = delete;

   private:
    SpinLock* lock_;
  };

 private:
  void take() {
    if (waiting_.load(std::memory_order_relaxed) != 0 || !try_to_take()) [[unlikely]]
      wait_and_take();
  }
  // A thread that takes the lock again and again, such as one that polls, lets others in between.
  [[gnu::noinline, gnu::cold]] void wait_and_take() {
    waiting_.fetch_add(1, std::memory_order_relaxed);
    do sched_yield();
    while (!try_to_take());
    waiting_.fetch_sub(1, std::memory_order_relaxed);
  }
  bool try_to_take() {
    uint32_t seen = turns_.load(std::memory_order_relaxed);
    return seen % 2 == 0 && turns_.compare_exchange_strong(seen, seen + 1);
  }
  void release() {
    turns_.store(turns_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }

  std::atomic<uint32_t> turns_{0};  // odd while a thread holds the lock
  std::atomic<uint32_t> waiting_{0};
};

}  // namespace urma::umdk
