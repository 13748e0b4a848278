// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "engine/descriptor_sleep.h"
#include "engine/keeper.h"
#include "engine/open_state.h"
#include "engine/passes.h"

namespace urma::engine {

// Lets an application thread wait for completions of a JFC: by running passes and then sleeping at
// the engine's descriptors (polled devices), by sleeping at the JFC while the service thread runs
// passes (served devices), or by advancing the clock of a simulation. Called by any thread.
class Waiting {
 public:
  // This object owns none of these, and all of them outlive it.
  Waiting(Passes& passes, Keeper& keeper, DescriptorSleep& descriptors, const OpenState& state)
      : passes_(passes), keeper_(keeper), descriptors_(descriptors), state_(state) {}

  // Each of these functions returns when the JFC has a completion, at `until` in the time of the
  // clock that it uses, or when the device is closed.

  // `has_service`: the service thread wakes threads that sleep at their JFCs.
  void run_passes(jetty::Jfc& jfc, Time until, bool has_service);
  void be_served(jetty::Jfc& jfc, Time until);
  // `inlined`: no other thread runs the timers of this engine.
  void simulate(jetty::Jfc& jfc, Time until, drivers::VirtualClock& clock, bool inlined);

 private:
  void sleep_somewhere(jetty::Jfc& jfc, Time until, bool has_service);

  Passes& passes_;
  Keeper& keeper_;
  DescriptorSleep& descriptors_;
  const OpenState& state_;
  std::atomic<uint32_t> spinning_{0};  // threads in `run_passes` that do not sleep
};

}  // namespace urma::engine
