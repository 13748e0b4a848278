// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "base/timer_wheel.h"
#include "jetty/initiator/flows.h"
#include "jetty/initiator/work_order.h"

namespace urma::jetty {

// The works that were taken and have not ended: each Jetty has a list of them in post order, and
// each of them ends here once, with a status that is combined from the ends of its parts. It does
// not know slices, nor why they end. The Initiator owns it; only the thread that runs the engine
// calls it.
class OpenWorks {
 public:
  OpenWorks(uint32_t jetties, const InitiatorCommon& common, Flows& flows, WorkOrder& order);

  // Appends a work that was just taken.
  void add(Jetty& jetty, uint16_t lease, Time now);
  // Returns false if the work was cancelled before.
  static bool cancel(WorkState& work, Time now) {
    if (work.cancelled) return false;
    work.cancelled = true;
    work.cancelled_at = now;
    return true;
  }
  static void cancel_all(Jetty& jetty, Time now) {
    for (uint16_t i = jetty.oldest; i != Queues::none; i = jetty.works[i].newer) {
      cancel(jetty.works[i], now);
    }
  }

  // A slice of the work has ended. `answered`: by an answer of the target.
  void slice_ended(Jetty& jetty, uint16_t lease, Status status, bool answered, Time now);
  // Cancels the part of a work that is not cut. The work ends when its open slices have ended.
  [[gnu::cold]] void give_up_rest(Jetty& jetty, uint16_t lease, Status status, Time now);
  // The local memory of the work cannot be copied: it is cancelled when its Jetty's works are next
  // looked at, which is due now.
  [[gnu::cold]] void cannot_access(Jetty& jetty, uint16_t lease);
  // Ends the work.
  void finish(Jetty& jetty, uint16_t lease, Status status, bool answered, Time now);
  // Completes a successful work that was never added: no completion has to be withheld for it, and
  // its own need not be. A copy is such a work if the Jetty has no other.
  void complete_light(Jetty& jetty, uint16_t lease);
  // The same for a work that is not in its berth. The berths of completed unsignalled works are
  // given back with the next completion.
  [[gnu::always_inline]] void complete_light(Jetty& jetty, uint16_t lease, bool signalled,
                                             const Completion& completion) {
    jetty.queues->jfs().chain(lease, jetty.chained);
    jetty.chained = lease;
    if (!signalled && completion.ok()) return;
    jetty.chained = Queues::none;
    jetties_.complete(jetty, completion, lease);
  }

  // ---- time

  // The Jetty has a new work. If its timer is armed, it fires early enough, because it then checks
  // the oldest work.
  void watch(Jetty& jetty, Time now) {
    const uint32_t timer = jetties_.index_of(jetty);
    if (!timers_.armed(timer)) timers_.arm(timer, now + jetty.timeouts.operation);
  }
  // The works of this Jetty are due at this time at the latest, or exactly then.
  void look_no_later(Jetty& jetty, Time at) { timers_.arm_no_later(jetties_.index_of(jetty), at); }
  void look_at(Jetty& jetty, Time at) { timers_.arm(jetties_.index_of(jetty), at); }
  // Writes the indices of Jetties whose works are due now, and returns how many.
  size_t due(Time now, std::span<uint32_t> jetties) { return timers_.poll(now, jetties); }
  Time next_deadline() const { return timers_.next_deadline(); }
  // The Jetty is about to be destroyed.
  void detach(Jetty& jetty);

 private:
  void show(Jetty& jetty, uint16_t lease, Status status);
  [[gnu::cold]] void suspend(Jetty& jetty, Time now);

  Jetties& jetties_;
  transport::Channels& channels_;
  InitiatorCounters& counters_;
  Flows& flows_;
  WorkOrder& order_;
  TimerWheel timers_;
};

}  // namespace urma::jetty
