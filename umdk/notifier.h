// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <mutex>
#include <span>

#include "umdk/context.h"

namespace urma::umdk {

// The results of imports and bindings that a program asked for asynchronously. These send nothing,
// so the results are known at once. Any thread calls it.
struct Notifier : urma_notifier_t {
  static constexpr uint64_t kind = 0x6e6f'7469'6679;

  // Throws std::bad_alloc.
  explicit Notifier(Context& context);
  ~Notifier();
  Context& context() const { return *static_cast<Context*>(urma_ctx); }

  void add(const urma_notify_t& result);
  // As Jfce::wait.
  int wait(std::span<urma_notify_t> out, int limit_ms);

  uint64_t handle = 0;

 private:
  std::mutex mutex_;
  std::deque<urma_notify_t> results_{};
  OwnDescriptor ready_;  // readable while there are results
};

}  // namespace urma::umdk
