#pragma once

#include <atomic>
#include <span>

#include "base/bell.h"
#include "drivers/driver.h"
#include "urma/core/status.h"

namespace urma::engine {

// How the thread that sleeps for an engine is woken: the asleep flag, and the eventfd or the port's
// bell. It does not know which thread sleeps, nor what for.
//
// No thread sleeps through an event. A thread that is about to sleep calls `drowse`, which sets the
// flag and fences, and only then looks at all that could end its sleep: posts and commands, the
// alarm, its completions. A thread that brings one of these publishes it and calls `wake`, which
// fences and then looks at the flag. So either the sleeper sees what was published, or the other
// thread sees the sleeper and wakes it.
//
// Writers: `asleep_` - the sleeper, cleared by the thread that wakes it. One thread at a time
// sleeps (DescriptorSleep); any thread wakes it.
class Waker {
 public:
  // In a simulation, `clock` runs the passes of `driven`, and no thread sleeps. Neither the port
  // nor the clock is owned; both outlive this object.
  Waker(drivers::PacketPort& port, drivers::VirtualClock* clock,
        drivers::VirtualClock::Driven& driven)
      : port_(port), bell_(port.bell()), clock_(clock), driven_(driven) {}
  ~Waker();
  Waker(const Waker&) = delete;
  Waker& operator=(const Waker&) = delete;

  // Creates the eventfd. Errors: no_resources.
  Result<void> start();

  // ---- any thread

  // Call it after publishing what the sleeper must notice.
  void wake();
  // For a caller that has executed a full fence itself.
  bool asleep() const { return asleep_.load(std::memory_order_seq_cst); }

  // ---- the sleeper, in this order

  // From here on `wake` wakes this thread.
  void drowse();
  // Peers ring the bell only for what a pass sees: the sleeper must run one after `drowse`.
  bool needs_pass() const { return bell_ != nullptr; }
  // Sleeps until this time of the machine. May return spuriously.
  void rest(Time until);
  void awake();

 private:
  void poll_descriptors(Time until);

  drivers::PacketPort& port_;
  Bell* const bell_;  // where to sleep, if the port has one
  drivers::VirtualClock* const clock_;
  drivers::VirtualClock::Driven& driven_;
  int descriptor_ = -1;
  // Read by each thread that posts; written around a sleep.
  alignas(64) std::atomic<bool> asleep_{false};
};

}  // namespace urma::engine
