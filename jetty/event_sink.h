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
};

}  // namespace urma::jetty
