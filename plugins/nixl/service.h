// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <thread>

#include "urma/core/result.h"

namespace urma::nixl {

// The thread of an engine. It sleeps until a notification or an event arrives, or until it is
// woken, so that none of these waits for the application.
class Service {
 public:
  struct Descriptors {
    int mailbox;
    int events;
  };

  // `look` takes in what has arrived and returns whether to look again soon.
  static Result<std::unique_ptr<Service>> start(Descriptors descriptors,
                                                std::function<bool()> look);
  Service(const Service&) = delete;
  ~Service();

  // Makes the thread look. Any thread may call it.
  void wake();

 private:
  Service(Descriptors descriptors, int bell, std::function<bool()> look)
      : descriptors_(descriptors), bell_(bell), look_(std::move(look)) {}
  void run();

  const Descriptors descriptors_;
  const int bell_;  // an eventfd
  const std::function<bool()> look_;
  std::atomic<bool> stops_ = false;
  std::thread thread_;
};

}  // namespace urma::nixl
