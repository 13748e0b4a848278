// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sched.h>

#include <atomic>

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
      if (lock_ != nullptr) lock_->taken_.store(false, std::memory_order_release);
    }
    Held(const Held&) = delete;

   private:
    SpinLock* lock_;
  };

 private:
  void take() {
    while (taken_.exchange(true, std::memory_order_acquire)) {
      while (taken_.load(std::memory_order_relaxed)) sched_yield();
    }
  }

  std::atomic<bool> taken_{false};
};

}  // namespace urma::umdk
