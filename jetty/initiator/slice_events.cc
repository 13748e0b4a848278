// SPDX-License-Identifier: Apache-2.0
#include "jetty/initiator/slice_events.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

namespace urma::jetty {
namespace {

constexpr Duration longest_receiver_wait = std::chrono::milliseconds(1);
// The wait of a slice that the target cannot execute before an older one. It is sent again earlier,
// when that has ended.
constexpr Duration longest_turn_wait = std::chrono::milliseconds(16);
// The interval at which a cancellation is reported again, on media that do not acknowledge packets.
constexpr Duration report_again_after = std::chrono::milliseconds(100);
constexpr size_t slices_at_a_time = 64;

}  // namespace

SliceEvents::SliceEvents(const InitiatorCommon& common, const Uses& uses, uint64_t seed)
    : peers_(common.peers),
      counters_(common.counters),
      flows_(uses.flows),
      slices_(uses.slices),
      offers_(uses.offers),
      order_(uses.order),
      works_(uses.works),
      timers_(uses.slices.capacity()),
      settling_(uses.slices.capacity()),
      jitter_(seed) {}

void SliceEvents::apply(Slice& slice, SliceEvent event, Time now, const Answer& answer) {
  const SliceState before = slice.state;
  const SliceStep next = step(before, event, in_device(slice));
  slice.state = next.state;
  switch (next.action) {
    case SliceAction::none:
      break;
    case SliceAction::wait:
      wait_for_receiver(slice, answer.timer, now);
      break;
    case SliceAction::offer_again:
      slice.retry = true;
      slice.placed = 0;
      ++counters_.retries;
      offers_.offer_later(slice);
      break;
    case SliceAction::offer:
      offers_.offer_later(slice);
      break;
  }
  // The status was decided before, but the driver still had a frame of the slice: it is known only
  // now what happened to it.
  if (before == SliceState::settling && slice.keeps_tassn) {
    slice.reports_cancelled = slice.reports_cancelled || must_report(slice, before, event);
  }
  if (next.decided) {
    slice.status = answer.given ? answer.status : next.status;
    slice.keeps_tassn = next.tombstone || leaves_gap(slice, before, event);
    slice.reports_cancelled = slice.keeps_tassn && must_report(slice, before, event);
    if (slice.state == SliceState::settling) settling_[settling_count_++] = slices_.index_of(slice);
  }
  if (slice.state != SliceState::done || slice.is_tombstone()) return;
  if (slice.keeps_tassn && slice.reports_cancelled) report_cancelled(slice);
  end(slice, now);
}

// Returns whether the target still waits for this slice's number, which was given on a channel that
// ended.
bool SliceEvents::leaves_gap(const Slice& slice, SliceState before, SliceEvent event) const {
  if (flows_.at(slice.flow).sequence != Sequence::kept) return false;
  const bool between = before == SliceState::stranded || before == SliceState::parted;
  const bool given_up = event == SliceEvent::cancel || event == SliceEvent::overdue;
  const bool given_up_before =
      before == SliceState::withdrawing && event == SliceEvent::channel_died;
  return (between && given_up) || given_up_before;
}

// Returns whether the target must be notified that the slice will never be executed, because no
// packet on its way says so. All written packets may have been acknowledged and dropped: then no
// answer will come, a target that keeps the order waits for the slice, and the window of numbers
// ends at it.
bool SliceEvents::must_report(const Slice& slice, SliceState before, SliceEvent event) const {
  const bool known_as_not_executed =
      before == SliceState::waiting || event == SliceEvent::not_ready;
  const bool all_arrived = before == SliceState::delivered || event == SliceEvent::delivered;
  return known_as_not_executed || all_arrived || leaves_gap(slice, before, event);
}

void SliceEvents::report_cancelled(Slice& slice) {
  Flow& flow = flows_.at(slice.flow);
  if (peers_.at(flow.peer).channel != nullptr) return offers_.offer_later(slice);
  // The cancellation is reported on the next channel, which other slices ask for.
  slice.waiting_to_offer = flow.to_reoffer = true;
}

// On media without acknowledgements the notification is repeated until it is answered, but not
// while the peer is stalled or has no channel: `up` ends both.
void SliceEvents::report_again(Slice& slice, Time now) {
  const transport::Channel* const channel = peers_.at(flows_.at(slice.flow).peer).channel;
  if (channel == nullptr || channel->acknowledges() || channel->silent()) return;
  timers_.arm(slices_.index_of(slice), now + report_again_after);
  if (slice.in_offer || slice.waiting_to_offer) return;
  offers_.offer_later(slice);
}

// The slice is done: notifies its work, and erases the slice or keeps it as a tombstone.
void SliceEvents::end(Slice& slice, Time now) {
  Flow& flow = flows_.at(slice.flow);
  Jetty& jetty = flows_.jetty_of(flow);
  const uint16_t lease = slice.berth;
  const Status status = slice.status;
  offers_.stop_expecting(slice, now);
  if (slice.asks) order_.note_sequence(slice, false);
  timers_.disarm(slices_.index_of(slice));
  slice.bury();
  if (slice.atomic != 0) slices_.atomic_decided(flow, slice);
  if (slice.keeps_tassn) {
    report_again(slice, now);
  } else {
    erase(slice);
  }
  const bool answered = !claims_not_executed(status) && status != Status::unknown;
  works_.slice_ended(jetty, lease, status, answered, now);
}

void SliceEvents::erase(Slice& slice) {
  offers_.leave(slice);
  timers_.disarm(slices_.index_of(slice));
  Flow& flow = flows_.at(slice.flow);
  const bool window_moves = slices_.erase(slice);
  if (window_moves && (flow.first_to_cut != Queues::none || flow.peer_over)) flows_.activate(flow);
}

void SliceEvents::wait_for_receiver(Slice& slice, uint8_t timer, Time now) {
  ++counters_.not_ready;
  Flow& flow = flows_.at(slice.flow);
  if (transport::Channel* const channel = peers_.at(flow.peer).channel) channel->note_not_ready();
  Jetty& jetty = flows_.jetty_of(flow);
  jetty.works[slice.berth].progress = now;
  if (slice.not_ready_times == 0) slice.not_ready_since = now;
  const Berth& berth = jetty.queues->jfs().berth(slice.berth);
  // The limit is for slices that need a receive slot. Others were not ready because they arrived
  // before their turn, or because the target had no room.
  const bool receives = berth.operation == Operation::send || (berth.with_immediate && slice.last);
  if (receives && now - slice.not_ready_since > jetty.timeouts.receiver) {
    return apply(slice, SliceEvent::too_long, now);
  }
  offers_.begin_attempt(slice);
  // The slices behind the oldest one are repeated less often than that one. Otherwise the target
  // would spend its time refusing them.
  if (waits_for_older(slice, flow, jetty)) {
    return timers_.arm(slices_.index_of(slice), now + longest_turn_wait);
  }
  // The wait doubles each time, and is randomised, so that initiators that wait for the same
  // receiver do not return together.
  const int64_t doubled = int64_t{2000} << std::min(timer + slice.not_ready_times, 20);
  const int64_t wait = std::min(doubled, longest_receiver_wait.count());
  if (slice.not_ready_times < UINT8_MAX) ++slice.not_ready_times;
  const auto jitter = static_cast<int64_t>(jitter_.below(static_cast<uint64_t>(wait) / 2));
  timers_.arm(slices_.index_of(slice), now + Duration(wait * 3 / 4 + jitter));
}

// Returns whether the target keeps the order of this slice, and older ones are not done.
bool SliceEvents::waits_for_older(const Slice& slice, const Flow& flow, const Jetty& jetty) const {
  return flow.sequence == Sequence::kept && jetty.works[slice.berth].order == Order::strong &&
         flow.first_slice != slices_.index_of(slice);
}

void SliceEvents::turn_came(Flow& flow, Time now) {
  size_t left = slices_at_a_time;
  for (uint32_t i = flow.first_slice; i != Slice::none && left > 0; --left) {
    Slice& slice = slices_.at(i);
    if (slice.is_tombstone() || slice.state != SliceState::waiting) return;
    slice.not_ready_times = 0;
    timers_.disarm(i);
    i = slice.next;
    apply(slice, SliceEvent::due, now);
  }
}

// ---- reports of the channel

void SliceEvents::delivered(Slice& slice, Time now) {
  if (slice.is_tombstone()) {
    // The slice was cancelled before, and only now is known to have arrived.
    if (!std::exchange(slice.reports_cancelled, true)) report_cancelled(slice);
    return;
  }
  flows_.jetty_of(flows_.at(slice.flow)).works[slice.berth].progress = now;
  apply(slice, SliceEvent::delivered, now);
}

void SliceEvents::channel_began(Flow& flow, Time now) {
  for (uint32_t s = flow.first_slice; s != Slice::none;) {
    Slice& slice = slices_.at(s);
    s = slice.next;
    if (slice.is_tombstone()) {
      report_again(slice, now);
    } else {
      apply(slice, SliceEvent::channel_back, now);
    }
  }
  flows_.activate(flow);
}

// The wait for a late answer ends with the channel, also for settling slices; except that a target
// which keeps the order waits for each number.
void SliceEvents::channel_ended(Flow& flow, bool may_return, SliceEvent verdict, Time now) {
  for (uint32_t s = flow.first_slice; s != Slice::none;) {
    Slice& slice = slices_.at(s);
    s = slice.next;
    slice.expected = false;
    slice.keeps_tassn = slice.keeps_tassn && may_return && flow.sequence == Sequence::kept;
    slice.waiting_to_offer = slice.keeps_tassn;
    flow.to_reoffer = flow.to_reoffer || slice.keeps_tassn;
    offers_.leave(slice);
    if (slice.is_tombstone()) {
      if (!slice.keeps_tassn) erase(slice);
      continue;
    }
    timers_.disarm(slices_.index_of(slice));
    offers_.begin_attempt(slice);
    apply(slice, may_return ? SliceEvent::channel_died : verdict, now);
  }
}

void SliceEvents::settled(uint64_t fill, Time now) {
  settled_ = fill;
  for (uint32_t i = 0; i < settling_count_;) {
    Slice& slice = slices_.at(settling_[i]);
    if (in_device(slice)) {
      ++i;
      continue;
    }
    settling_[i] = settling_[--settling_count_];
    apply(slice, SliceEvent::settled, now);
  }
}

// ---- time

void SliceEvents::handle_timers(Time now) {
  std::array<uint32_t, slices_at_a_time> due;
  const size_t count = timers_.poll(now, due);
  for (const uint32_t index : std::span(due).first(count)) {
    if (!slices_.live(index)) continue;
    Slice& slice = slices_.at(index);
    if (slice.is_tombstone()) {
      report_again(slice, now);
    } else {
      apply(slice, SliceEvent::due, now);
    }
  }
}

}  // namespace urma::jetty
