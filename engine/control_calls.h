// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/engine.h"
#include "engine/passes.h"
#include "engine/waker.h"

namespace urma::engine {

// Carries a control call to a pass and its result back. The calling thread runs passes itself, or
// waits for those of another thread. Called by any thread, but not on the data path.
class ControlCalls {
 public:
  // This object owns none of these, and all of them outlive it. `clock`: the clock of a simulation,
  // else null.
  ControlCalls(Engine& engine, Passes& passes, Waker& waker, drivers::VirtualClock* clock)
      : engine_(engine), passes_(passes), waker_(waker), clock_(clock) {}

  // Calls `function(Engine&, Time)` inside one pass after the other until it returns true, and
  // returns then.
  template <class Function>
  void call(Function&& function) {
    struct Call : Command {
      Function* function;
    } command;
    command.function = &function;
    command.run = [](Command& self, Engine& engine, Time now) {
      return (*static_cast<Call&>(self).function)(engine, now);
    };
    carry(command);
  }

 private:
  void carry(Command& command);

  Engine& engine_;
  Passes& passes_;
  Waker& waker_;
  drivers::VirtualClock* const clock_;
};

}  // namespace urma::engine
