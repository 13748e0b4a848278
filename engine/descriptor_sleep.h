// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

#include "engine/keeper.h"
#include "engine/passes.h"
#include "engine/waker.h"

namespace urma::engine {

// Lets one thread at a time sleep at the engine's descriptors (or its port's bell), so that no
// other thread takes the signal that was meant for the sleeper. It does not know what a thread does
// that finds the descriptors occupied. Called by threads that wait for a JFC and by the service
// thread, without the engine token.
//
// Writers: `occupied_` - the thread that sleeps there.
class DescriptorSleep {
 public:
  // This object owns none of these, and all of them outlive it.
  DescriptorSleep(Engine& engine, Passes& passes, Waker& waker, Keeper& keeper)
      : engine_(engine), passes_(passes), waker_(waker), keeper_(keeper) {}

  // Reserves the descriptors for the calling thread. Returns false if another thread has them.
  bool occupy() { return !occupied_.exchange(true); }
  void leave() { occupied_.store(false); }
  // `seems_occupied` is relaxed, so its caller must check again later. `occupied` is ordered with
  // the keeper's timer: if it returns true, that thread sets the timer afterwards, when it leaves.
  bool seems_occupied() const { return occupied_.load(std::memory_order_relaxed); }
  bool occupied() const { return occupied_.load(); }

  bool port_is_polled() const { return waker_.port_is_polled(); }
  // Call it between `occupy` and `leave`. Sleeps until the alarm, at most until `until` in the
  // machine's time. A thread that waits for `jfc` sleeps until that queue has a completion; the
  // service thread, for which `jfc` is null, sleeps as long as it is the keeper. May return
  // spuriously.
  void sleep_until_alarm(jetty::Jfc* jfc, Time until);

 private:
  Engine& engine_;
  Passes& passes_;
  Waker& waker_;
  Keeper& keeper_;
  std::atomic<bool> occupied_{false};
};

}  // namespace urma::engine
