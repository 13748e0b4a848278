// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "urma/core/event.h"

namespace urma::jetty {

// Receives the events that no completion reports, such as the loss of a peer. It is called rarely,
// on the engine's thread.
class EventSink {
 public:
  virtual ~EventSink() = default;
  virtual void raise(const Event& event) = 0;
  // Drops the events of a Jetty that is destroyed, as far as the application cannot take them yet:
  // its id is free from now on.
  virtual void forget(JettyId) {}
};

}  // namespace urma::jetty
