// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "plugins/nccl/receiver.h"

namespace urma::nccl {

// A listenComm: takes the greetings of senders, and makes a receiver for each. One thread at a time
// uses it.
class Listener {
 public:
  // Makes a listener, and writes its handle. Errors: those of Device::jetty.
  static Result<std::unique_ptr<Listener>> make(SessionRef session, void* handle);
  // Returns a receiver for the next sender, or null if none has greeted. Never blocks. Errors:
  // those of Receiver::make and read_greeting.
  Result<std::unique_ptr<Receiver>> accept();

 private:
  Listener(SessionRef session, Jetty jetty);

  const SessionRef session_;         // closed after the Jetty
  std::vector<Greeting> greetings_;  // the buffers that the Jetty borrows
  Jetty jetty_;
};

}  // namespace urma::nccl
