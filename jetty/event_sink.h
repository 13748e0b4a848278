#pragma once

#include "urma/core/event.h"

namespace urma::jetty {

// Receives the events that no completion reports, such as a lost peer. Called on the engine's
// thread, rarely.
class EventSink {
 public:
  virtual ~EventSink() = default;
  virtual void raise(const Event& event) = 0;
};

}  // namespace urma::jetty
