// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "jetty/initiator/carried_slices.h"
#include "jetty/initiator/slice_events.h"

namespace urma::jetty {

// Ends works that the application, a time limit or a lost peer cancels: each as soon as its outcome
// is known, and within a bounded time even if it is not (docs/reliability.md). The Initiator owns
// it; only the thread that runs the engine calls it.
class Withdrawals {
 public:
  // The parts that end slices: those in packets, and those that a device carries.
  struct Ends {
    SliceEvents& events;
    CarriedSlices& carried;
  };
  Withdrawals(const InitiatorCommon& common, Flows& flows, FlowSlices& slices, OpenWorks& works,
              const Ends& ends);

  // Cancels all works of this Jetty.
  void flush(Jetty& jetty, Time now);
  // Cancels the works of this Jetty that use this memory.
  void flush_memory(Jetty& jetty, const std::byte* base, uint64_t bytes, Time now);
  // Ends the cancelled works of this Jetty.
  [[gnu::cold]] void end_cancelled(Jetty& jetty, Time now);
  // The peer of this flow is over, or cannot be reached: ends the works in line, as `event` ends
  // what has not begun.
  void clear_line(Flow& flow, SliceEvent event, Time now) { clear_line(flow, event, false, now); }
  // Cancels works that have made no progress for too long.
  [[gnu::cold]] void check_deadline(Jetty& jetty, Time now);

 private:
  void clear_line(Flow& flow, SliceEvent event, bool only_cancelled, Time now);
  void end_in_flow(Flow& flow, Time now);
  void end_held(Jetty& jetty, Time now);
  SliceEvent cancellation(const Flow& flow, const WorkState& work, SliceState state);
  Time progress_of(const Jetty& jetty, const WorkState& work);

  PeerStates& peers_;
  InitiatorCounters& counters_;
  Flows& flows_;
  FlowSlices& slices_;
  OpenWorks& works_;
  SliceEvents& events_;
  CarriedSlices& carried_;
  uint32_t checks_ = 0;
};

}  // namespace urma::jetty
