// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "urma/core/path.h"
#include "urma/core/time.h"

namespace urma::drivers {

// The clock of a simulated medium. Other media have none, and the engine reads the system's clock.
class VirtualClock {
 public:
  virtual ~VirtualClock() = default;
  virtual Time now() const = 0;
  // An engine, whose `pass` is run when something arrives at its endpoint, and at the time that its
  // last pass returned. An engine attaches itself at open, and detaches before it is destroyed.
  class Driven {
   public:
    virtual ~Driven() = default;
    virtual Time pass(Time now) = 0;
  };
  // Attaches an engine at one of its endpoints. The engine calls it for each of these.
  virtual void attach(Driven& driven, const Endpoint& at) = 0;
  virtual void detach(Driven& driven) = 0;
  // Runs the engine at the current time, because something was posted to it.
  virtual void poke(Driven& driven) = 0;
  // Advances time by one event, at most to `until`. Returns false if no event is planned.
  virtual bool step(Time until) = 0;
  virtual uint64_t seed() = 0;
};

}  // namespace urma::drivers
