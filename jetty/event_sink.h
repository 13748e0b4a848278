#pragma once

#include "urma/core/event.h"

namespace urma::jetty {

// Who is told what no completion tells. Engine thread; seldom.
class EventSink {
 public:
  virtual ~EventSink() = default;
  virtual void raise(const Event& event) = 0;
};

}  // namespace urma::jetty
