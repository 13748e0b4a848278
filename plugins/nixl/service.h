// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <thread>

#include "urma/core/result.h"

namespace urma::nixl {

// The thread of an engine. It sleeps until a notification or an event arrives, so that neither
// waits for the application.
class Service {
 public:
  struct Descriptors {
    int mailbox;
    int events;
  };

  // `look` takes in what has arrived and returns whether to look again soon.
  static Result<Service> start(Descriptors descriptors, std::function<bool()> look);
  Service(Service&& from) noexcept
      : thread_(std::move(from.thread_)), stop_(std::exchange(from.stop_, -1)) {}
  Service& operator=(Service&&) = delete;
  ~Service();

 private:
  Service(std::thread thread, int stop) : thread_(std::move(thread)), stop_(stop) {}

  std::thread thread_;
  int stop_;  // an eventfd that ends the thread
};

}  // namespace urma::nixl
