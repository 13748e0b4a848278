// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <span>

#include "base/bell.h"
#include "drivers/packet_port.h"
#include "urma/core/status.h"

namespace urma::engine {

// Wakes the thread that sleeps for an engine, by the asleep flag and by the eventfd or the port's
// bell. It does not know which thread sleeps, or why.
//
// No thread sleeps through an event. A thread that is about to sleep calls `drowse`, which sets the
// flag and fences, and only then checks everything that could end its sleep: posts, commands, the
// alarm and its completions. A thread that causes one of these publishes it and calls `wake`, which
// fences and then checks the flag. So either the sleeper sees what was published, or the other
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
      : port_(port),
        bell_(port.bell()),
        clock_(clock),
        driven_(driven),
        arms_(port.facts().arms),
        polled_(clock == nullptr && bell_ == nullptr && (arms_ || port.descriptors().empty())) {}
  ~Waker();
  Waker(const Waker&) = delete;
  Waker& operator=(const Waker&) = delete;

  // Creates the eventfd. Errors: no_resources.
  Result<void> start();

  // ---- any thread

  // Call it after publishing what the sleeper must notice.
  void wake();
  // Returns whether a thread sleeps. For callers that have executed a full fence.
  bool asleep() const { return asleep_.load(std::memory_order_seq_cst); }

  // ---- the sleeper, in this order

  // After this, `wake` wakes the calling thread.
  void drowse();
  // Returns whether the other ends of the port are threads that poll, so that this one should poll
  // for longer before it sleeps, and give way to them meanwhile. Either nothing that arrives can
  // wake a thread, or the port must be armed for that.
  bool port_is_polled() const { return polled_; }
  // Returns whether the sleeper must arm the port and run a pass after `drowse`: peers ring the
  // bell, or signal a descriptor, only for events that happen after that, and a pass finds the
  // earlier ones.
  bool needs_pass() const { return arms_ || bell_ != nullptr; }
  // Sleeps until `until`, in the machine's time. May return spuriously.
  void rest(Time until);
  void awake();

 private:
  void poll_descriptors(Time until);

  drivers::PacketPort& port_;
  Bell* const bell_;  // the port's bell, at which to sleep; null if the port has none
  drivers::VirtualClock* const clock_;
  drivers::VirtualClock::Driven& driven_;
  const bool arms_;
  const bool polled_;
  int descriptor_ = -1;
  // Read by each thread that posts; written around a sleep.
  alignas(64) std::atomic<bool> asleep_{false};
};

}  // namespace urma::engine
