// SPDX-License-Identifier: Apache-2.0
#include "jetty/initiator/withdrawals.h"

#include <algorithm>

namespace urma::jetty {
namespace {

// A cancelled work completes after this time at the latest, whether or not its outcome is known.
constexpr Duration withdrawal_limit = std::chrono::milliseconds(8);

}  // namespace

Withdrawals::Withdrawals(const InitiatorCommon& common, Flows& flows, FlowSlices& slices,
                         OpenWorks& works, const Ends& ends)
    : peers_(common.peers),
      counters_(common.counters),
      flows_(flows),
      slices_(slices),
      works_(works),
      events_(ends.events),
      carried_(ends.carried) {}

void Withdrawals::flush(Jetty& jetty, Time now) {
  OpenWorks::cancel_all(jetty, now);
  end_cancelled(jetty, now);
}

void Withdrawals::flush_memory(Jetty& jetty, const std::byte* base, uint64_t bytes, Time now) {
  bool any = false;
  for (uint16_t i = jetty.oldest; i != Queues::none; i = jetty.works[i].newer) {
    const bool uses = overlaps(jetty.queues->jfs().pieces(i), base, bytes);
    any = (uses && OpenWorks::cancel(jetty.works[i], now)) || any;
  }
  if (any) end_cancelled(jetty, now);
}

// Applies cancellations that are recorded in the works of a Jetty to their slices, in one walk.
void Withdrawals::end_cancelled(Jetty& jetty, Time now) {
  if (jetty.gated) end_held(jetty, now);
  for (uint32_t i = jetty.first_flow; i != Flow::none;) {
    Flow& flow = flows_.at(i);
    i = flow.next_of_jetty;
    end_in_flow(flow, now);
  }
  carried_.end_cancelled(jetty, now);
  if (jetty.oldest != Queues::none) {
    works_.look_no_later(jetty, now + withdrawal_limit);
  }
}

// Returns the event that ends a cancelled work: `unreachable` if it timed out without a channel.
SliceEvent Withdrawals::cancellation(const Flow& flow, const WorkState& work, SliceState state) {
  const PeerState* peer = peers_.find(flow.peer);
  const bool no_channel = peer == nullptr || peer->channel == nullptr ||
                          (state == SliceState::held && peer->channel->silent());
  return work.timed_out && no_channel ? SliceEvent::unreachable : SliceEvent::cancel;
}

void Withdrawals::end_in_flow(Flow& flow, Time now) {
  Jetty& jetty = flows_.jetty_of(flow);
  clear_line(flow, SliceEvent::cancel, true, now);
  for (uint32_t s = flow.first_slice; s != Slice::none;) {
    Slice& slice = slices_.at(s);
    s = slice.next;
    if (slice.is_tombstone()) continue;
    const WorkState& work = jetty.works[slice.berth];
    if (work.overdue) {
      events_.apply(slice, SliceEvent::overdue, now);
    } else if (work.cancelled) {
      events_.apply(slice, cancellation(flow, work, slice.state), now);
    }
  }
}

// Ends works that were cancelled before they began.
void Withdrawals::end_held(Jetty& jetty, Time now) {
  for (uint16_t i = jetty.oldest; i != Queues::none;) {
    const uint16_t lease = i;
    WorkState& work = jetty.works[lease];
    i = work.newer;
    if (work.held && work.cancelled) works_.finish(jetty, lease, Status::flushed, false, now);
  }
}

// Ends the works in line: all of them, or only the cancelled ones.
void Withdrawals::clear_line(Flow& flow, SliceEvent event, bool only_cancelled, Time now) {
  if (flow.jetty == Flow::none) return;
  Jetty& jetty = flows_.jetty_of(flow);
  uint16_t lease = flow.first_to_cut;
  flow.first_to_cut = flow.last_to_cut = Queues::none;
  while (lease != Queues::none) {
    WorkState& work = jetty.works[lease];
    const uint16_t next = work.next_to_cut;
    work.in_line = false;
    if (only_cancelled && !work.cancelled) {
      flows_.put_in_line(flow, jetty, lease, false);
    } else {
      const bool asked = event == SliceEvent::cancel;
      const SliceEvent end = asked ? cancellation(flow, work, SliceState::held) : event;
      works_.give_up_rest(jetty, lease, step(SliceState::held, end, false).status, now);
    }
    lease = next;
  }
}

// ---- time limits

// Returns when the work last made progress. Acknowledgements on its channel count as progress while
// packets of the work are being sent.
Time Withdrawals::progress_of(const Jetty& jetty, const WorkState& work) {
  Time progress = work.progress;
  const Flow& flow = flows_.at(work.flow);
  // The channel and the target serve earlier works first, so answers to earlier works are progress.
  // Answers to later works are not.
  if (static_cast<int32_t>(work.number - flow.last_answered) > 0) {
    progress = std::max(progress, flow.last_answer);
  }
  if (work.open_slices == 0) return progress;
  const PeerState* peer = peers_.find(flow.peer);
  if (peer == nullptr || peer->channel == nullptr) return progress;
  for (uint32_t s = flow.first_slice; s != Slice::none; s = slices_.at(s).next) {
    const Slice& slice = slices_.at(s);
    if (slice.is_tombstone() || &jetty.works[slice.berth] != &work) continue;
    if (slice.state == SliceState::sending) {
      return std::max(progress, peer->channel->last_progress());
    }
  }
  return progress;
}

// Deadlines apply to the oldest work to each peer. When it times out it is cancelled, and completes
// a little later whether or not its outcome is known. Then the next work is the oldest.
void Withdrawals::check_deadline(Jetty& jetty, Time now) {
  ++checks_;
  Time next = never;
  bool changed = false;
  for (uint16_t i = jetty.oldest; i != Queues::none; i = jetty.works[i].newer) {
    WorkState& work = jetty.works[i];
    // The time of a work that waits for earlier ones starts when the work begins.
    if (work.held) continue;
    if (work.inaccessible && OpenWorks::cancel(work, now)) changed = true;
    if (!work.cancelled) {
      Flow& flow = flows_.at(work.flow);
      if (flow.checked == checks_) continue;
      const Time due = progress_of(jetty, work) + jetty.timeouts.operation;
      if (now < due) {
        flow.checked = checks_;
        next = std::min(next, due);
        continue;
      }
      ++counters_.timeouts;
      OpenWorks::cancel(work, now);
      work.timed_out = true;
      changed = true;
    } else if (!work.overdue && now >= work.cancelled_at + withdrawal_limit) {
      work.overdue = changed = true;
    }
    if (!work.overdue) next = std::min(next, work.cancelled_at + withdrawal_limit);
  }
  if (changed) end_cancelled(jetty, now);
  if (jetty.oldest != Queues::none && next != never) {
    works_.look_at(jetty, std::max(next, now + TimerWheel::tick));
  }
}

}  // namespace urma::jetty
