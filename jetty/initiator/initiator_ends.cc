// Ends works without an answer: cancelled ones, and those that timed out.

#include <algorithm>

#include "base/assert.h"
#include "jetty/initiator/initiator.h"

namespace urma::jetty {
namespace {

// A cancelled work completes after this time at the latest, whether or not its outcome is known.
constexpr Duration withdrawal_limit = std::chrono::milliseconds(8);
constexpr size_t timers_at_a_time = 64;

}  // namespace

// ---- cancelled works

// Returns false if the work was cancelled before.
bool Initiator::cancel(WorkState& work, Time now) {
  if (work.cancelled) return false;
  work.cancelled = true;
  work.cancelled_at = now;
  return true;
}

void Initiator::flush(Jetty& jetty, Time now) {
  for (uint16_t i = jetty.oldest; i != Queues::none; i = jetty.works[i].newer) {
    cancel(jetty.works[i], now);
  }
  sweep_jetty(jetty, now);
}

// Applies cancellations that are recorded in the works of a Jetty to their slices, in one walk.
void Initiator::sweep_jetty(Jetty& jetty, Time now) {
  if (jetty.gated) end_held(jetty, now);
  for (uint32_t i = jetty.first_flow; i != Flow::none;) {
    Flow& flow = flows_.at(i);
    i = flow.next_of_jetty;
    sweep(flow, now);
  }
  if (jetty.oldest != Queues::none) {
    jetty_timers_.arm_no_later(jetties_.index_of(jetty), now + withdrawal_limit);
  }
}

// Returns the event that ends a cancelled work: `unreachable` if it timed out without a channel.
SliceEvent Initiator::cancellation(const Flow& flow, const WorkState& work, SliceState state) {
  const PeerState* peer = peers_.find(flow.peer);
  const bool no_channel = peer == nullptr || peer->channel == nullptr ||
                          (state == SliceState::held && peer->channel->silent());
  return work.timed_out && no_channel ? SliceEvent::unreachable : SliceEvent::cancel;
}

void Initiator::sweep(Flow& flow, Time now) {
  Jetty& jetty = jetties_.at(flow.jetty);
  clear_line(flow, SliceEvent::cancel, true, now);
  for (uint32_t s = flow.first_slice; s != Slice::none;) {
    Slice& slice = slices_.at(s);
    s = slice.next;
    if (slice.is_tombstone()) continue;
    const WorkState& work = jetty.works[slice.berth];
    if (work.overdue) {
      apply(slice, SliceEvent::overdue, now);
    } else if (work.cancelled) {
      apply(slice, cancellation(flow, work, slice.state), now);
    }
  }
}

void Initiator::flush_memory(const std::byte* base, uint64_t bytes, Time now) {
  jetties_.for_each([&](Jetty& jetty) {
    if (jetty.ordering.mode == ServiceMode::unreliable) {
      return flush_datagrams(jetty, base, bytes, now);
    }
    bool any = false;
    for (uint16_t i = jetty.oldest; i != Queues::none; i = jetty.works[i].newer) {
      const bool uses = overlaps(jetty.queues->jfs().pieces(i), base, bytes);
      any = (uses && cancel(jetty.works[i], now)) || any;
    }
    if (any) sweep_jetty(jetty, now);
  });
}

bool Initiator::using_memory(const std::byte* base, uint64_t bytes) {
  bool any = false;
  jetties_.for_each([&](Jetty& jetty) {
    for (uint16_t i = jetty.oldest; i != Queues::none && !any; i = jetty.works[i].newer) {
      any = overlaps(jetty.queues->jfs().pieces(i), base, bytes);
    }
  });
  return any;
}

void Initiator::detach(Jetty& jetty) {
  URMA_ASSERT(jetty.outstanding == 0, "a Jetty is destroyed only after its works have ended");
  for (uint32_t i = jetty.first_flow; i != Flow::none;) {
    Flow& flow = flows_.at(i);
    i = flow.next_of_jetty;
    flow.jetty = flow.next_of_jetty = Flow::none;
  }
  jetty.first_flow = Flow::none;
  jetty_timers_.disarm(jetties_.index_of(jetty));
}

// ---- time

void Initiator::handle_timers(Time now) {
  std::array<uint32_t, timers_at_a_time> due;
  const size_t slices = slice_timers_.poll(now, due);
  for (const uint32_t index : std::span(due).first(slices)) {
    if (!slices_.live(index)) continue;
    Slice& slice = slices_.at(index);
    if (slice.is_tombstone()) {
      report_again(slice, now);
    } else {
      apply(slice, SliceEvent::due, now);
    }
  }
  const size_t jetties = jetty_timers_.poll(now, due);
  for (const uint32_t index : std::span(due).first(jetties)) {
    if (jetties_.live(index)) check_deadline(jetties_.at(index), now);
  }
}

Time Initiator::next_deadline() const {
  return std::min(jetty_timers_.next_deadline(), slice_timers_.next_deadline());
}

// Returns when the work last made progress. Acknowledgements on its channel count as progress while
// packets of the work are being sent.
Time Initiator::progress_of(const Jetty& jetty, const WorkState& work) {
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
void Initiator::check_deadline(Jetty& jetty, Time now) {
  ++checks_;
  Time next = never;
  bool changed = false;
  for (uint16_t i = jetty.oldest; i != Queues::none; i = jetty.works[i].newer) {
    WorkState& work = jetty.works[i];
    // The time of a work that waits for earlier ones starts when the work begins.
    if (work.held) continue;
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
      cancel(work, now);
      work.timed_out = true;
      changed = true;
    } else if (!work.overdue && now >= work.cancelled_at + withdrawal_limit) {
      work.overdue = changed = true;
    }
    if (!work.overdue) next = std::min(next, work.cancelled_at + withdrawal_limit);
  }
  if (changed) sweep_jetty(jetty, now);
  if (jetty.oldest != Queues::none && next != never) {
    jetty_timers_.arm(jetties_.index_of(jetty), std::max(next, now + TimerWheel::tick));
  }
}

}  // namespace urma::jetty
