// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/prng.h"
#include "base/timer_wheel.h"
#include "jetty/initiator/offers.h"
#include "jetty/initiator/open_works.h"

namespace urma::jetty {

// Applies events to slices: asks `step` (slice_table.h) what follows, does it, and reports the end
// of a slice to its work. A slice is done only when no driver reads its memory any more; a number
// that the target may still wait for is kept as a tombstone, and reported to it. It knows neither
// answers nor why a work is cancelled. The Initiator owns it; only the thread that runs the engine
// calls it.
class SliceEvents {
 public:
  struct Uses {
    Flows& flows;
    FlowSlices& slices;
    Offers& offers;
    WorkOrder& order;
    OpenWorks& works;
  };
  SliceEvents(const InitiatorCommon& common, const Uses& uses, uint64_t seed);

  void apply(Slice& slice, SliceEvent event, Time now) { apply(slice, event, now, Answer{}); }
  void answered(Slice& slice, Status status, Time now) {
    apply(slice, SliceEvent::answered, now, {.given = true, .status = status});
  }
  // `timer`: the target asks to wait 2 us * 2^timer.
  void not_ready(Slice& slice, uint8_t timer, Time now) {
    apply(slice, SliceEvent::not_ready, now, {.timer = timer});
  }
  // Slices of the flow have ended. If the target keeps their order, and has refused the next ones
  // because they arrived before their turn, these are sent again now.
  void ended_some(Flow& flow, Time now) {
    if (flow.sequence != Sequence::kept || flow.first_slice == Slice::none) return;
    if (slices_.at(flow.first_slice).state == SliceState::waiting) turn_came(flow, now);
  }
  // Destroys a slice without an event. The number of a tombstone is not needed any more.
  void erase(Slice& slice);

  // ---- reports of the channel

  // Each packet of the slice has been acknowledged.
  void delivered(Slice& slice, Time now);
  // The peer of this flow has a channel again.
  [[gnu::cold]] void channel_began(Flow& flow, Time now);
  // Its channel has ended; `verdict`: what this means for slices, unless the peer may return.
  [[gnu::cold]] void channel_ended(Flow& flow, bool may_return, SliceEvent verdict, Time now);

  // ---- memory that drivers read

  // Packets that are written from now on belong to this fill. Fills are numbered upwards.
  void begin_fill(uint64_t fill) { fill_ = fill; }
  void note_in_fill(Slice& slice) const { slice.last_written = fill_; }
  // No driver reads memory for packets of fills up to this one any more.
  void settled(uint64_t fill, Time now);
  // Returns whether slices whose status is decided wait for `settled`.
  bool settling() const { return settling_count_ > 0; }
  // Returns whether a driver may still read memory for packets of this slice. An answer does not
  // rule that out: a second copy of a packet may be in the device, or the peer may answer a slice
  // that it has not received.
  bool in_device(const Slice& slice) const { return slice.last_written > settled_; }

  // ---- time

  void handle_timers(Time now);
  Time next_deadline() const { return timers_.next_deadline(); }

 private:
  struct Answer {
    bool given = false;
    Status status = Status::ok;
    uint8_t timer = 0;
  };
  void apply(Slice& slice, SliceEvent event, Time now, const Answer& answer);
  void end(Slice& slice, Time now);
  [[gnu::cold]] void wait_for_receiver(Slice& slice, uint8_t timer, Time now);
  bool waits_for_older(const Slice& slice, const Flow& flow, const Jetty& jetty) const;
  [[gnu::cold]] void turn_came(Flow& flow, Time now);
  bool leaves_gap(const Slice& slice, SliceState before, SliceEvent event) const;
  bool must_report(const Slice& slice, SliceState before, SliceEvent event) const;
  [[gnu::cold]] void report_cancelled(Slice& slice);
  [[gnu::cold]] void report_again(Slice& slice, Time now);

  PeerStates& peers_;
  InitiatorCounters& counters_;
  Flows& flows_;
  FlowSlices& slices_;
  Offers& offers_;
  WorkOrder& order_;
  OpenWorks& works_;
  TimerWheel timers_;
  // slices whose status is decided, but which a driver may still read
  RegionArray<uint32_t> settling_;
  uint32_t settling_count_ = 0;
  uint64_t fill_ = 0;
  uint64_t settled_ = 0;
  Prng jitter_;
};

}  // namespace urma::jetty
