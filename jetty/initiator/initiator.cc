// SPDX-License-Identifier: Apache-2.0
#include "jetty/initiator/initiator.h"

#include <array>
#include <span>
#include <utility>

#include "base/assert.h"
#include "jetty/channel_status.h"

namespace urma::jetty {
namespace {

constexpr size_t jetties_at_a_time = 64;
constexpr uint32_t most_carried = 1024;

}  // namespace

Initiator::Initiator(const Limits& limits, Jetties& jetties, PeerStates& peers,
                     transport::Channels& channels, Staging& staging, uint64_t seed)
    : jetties_(jetties),
      common_{jetties, peers, channels, counters_, staging},
      flows_(limits.flows, common_),
      order_(limits.jetties, common_, flows_),
      works_(limits.jetties, common_, flows_, order_),
      slices_(limits.slices, flows_),
      offers_(common_, flows_, slices_),
      events_(common_, parts_, seed),
      carried_(std::min(limits.slices, most_carried), common_, flows_, works_) {}

// ---- works

// Begins a work that need not wait any more. If no work waits in line, its first slice need not
// wait either.
inline void Initiator::launch(Jetty& jetty, uint16_t lease, Status refused, const DoneAhead& done,
                              Time now) {
  const Berth& berth = jetty.queues->jfs().berth(lease);
  // Most Jetties have one flow, which is found without a call.
  Flow* flow = refused == Status::ok ? flows_.first_of(jetty, berth.peer) : nullptr;
  if (flow == nullptr && refused == Status::ok) {
    flow = flows_.find_or_make(jetty, berth.peer, refused);
  }
  if (flow == nullptr) return works_.finish(jetty, lease, refused, false, now);
  WorkState& work = jetty.works[lease];
  work.number = ++flow->works;
  if (berth.order != Order::none) work.order = order_.order_of(jetty, berth, *flow);
  work.flow = flows_.index_of(*flow);
  if (!noting_) cutter_.cut_first(*flow, jetty, lease, done, now);
  if (!work.cut) flows_.put_in_line(*flow, jetty, lease, false);
}

void Initiator::start(Jetty& jetty, uint16_t lease, Time now) {
  const bool ready = jetty.state == JettyState::ready;
  const Status refused = ready ? jetty.queues->jfs().berth(lease).verdict : Status::flushed;
  launch(jetty, lease, refused, {}, now);
}

uint32_t Initiator::take(Jetty& jetty, uint32_t budget, Time now, DoneAhead done) {
  if (jetty.ordering.mode == ServiceMode::unreliable) [[unlikely]]
    return datagrams_.take(jetty, budget, now);
  Leases& berths = jetty.queues->jfs();
  const uint32_t count = std::min(budget, berths.waiting());
  const bool untouched = !noting_ && !done;
  transport::Channel* const channel = untouched ? copied_.channel(jetty) : nullptr;
  uint32_t copies = count;
  uint32_t i = 0;
  // Large works take their turn.
  if (channel != nullptr) i = copied_.copy(jetty, *channel, transport::most_at_once, copies);
  for (; i < count; ++i) {
    const DoneAhead before = std::exchange(done, {});
    if (take_light(jetty, before, now)) continue;
    lights_.record(jetty, now);
    const uint16_t lease = berths.take_posted();
    const Berth& berth = jetty.queues->jfs().berth(lease);
    ++counters_.works;
    WorkState& work = jetty.works[lease] = {};
    work.progress = now;
    jetty.gate.posted(lease, berth.signalled, jetty.ordering.in_order);
    works_.add(jetty, lease, now);
    const Status refused = jetty.state == JettyState::ready ? berth.verdict : Status::flushed;
    if (jetty.gated || asks_order(berth)) [[unlikely]] {
      if (refused != Status::ok || order_.may_begin(jetty, lease)) start(jetty, lease, now);
    } else {
      launch(jetty, lease, refused, before, now);
    }
  }
  URMA_ASSERT(!done, "the first work is the one that `send_ahead` has seen");
  return count;
}

// Takes the next posted work and sends it, if it can be light. `before`: what was done with it.
inline bool Initiator::take_light(Jetty& jetty, const DoneAhead& before, Time now) {
  if (noting_ || before.copied_bytes > 0 || jetty.first_flow == Flow::none) return false;
  Flow& flow = flows_.at(jetty.first_flow);
  const Jfs& jfs = jetty.queues->jfs();
  if (!lights_.takes(jetty, flow, jfs.berth(jfs.next_posted()))) return false;
  if (!before.sent && !cutter_.send_light(jetty)) return false;
  lights_.add(flow, jetty, now);
  return true;
}

void Initiator::note(Jetty& jetty, Time now) {
  if (!jetty.queues->jfs().used()) return;
  noting_ = true;
  take(jetty, jetty.queues->jfs().waiting(), now);
  noting_ = false;
}

void Initiator::flush_memory(const std::byte* base, uint64_t bytes, Time now) {
  lights_.record_all(now);
  jetties_.for_each([&](Jetty& jetty) {
    if (jetty.ordering.mode == ServiceMode::unreliable) {
      datagrams_.flush_memory(jetty, base, bytes, now);
    } else {
      withdrawals_.flush_memory(jetty, base, bytes, now);
    }
  });
}

bool Initiator::using_memory(const std::byte* base, uint64_t bytes, Time now) {
  lights_.record_all(now);
  bool any = false;
  jetties_.for_each([&](Jetty& jetty) {
    for (uint16_t i = jetty.oldest; i != Queues::none && !any; i = jetty.works[i].newer) {
      any = overlaps(jetty.queues->jfs().pieces(i), base, bytes);
    }
  });
  return any;
}

void Initiator::detach(Jetty& jetty) {
  works_.detach(jetty);
  flows_.detach(jetty);
}

// ---- outwards

bool Initiator::cut(uint32_t budget, Time now) {
  const bool released = order_.lets_go() && release(now);
  return cutter_.cut(budget, now) || released;
}

// Begins works that need not wait any more. Not called where works end, because other works are
// being processed there.
bool Initiator::release(Time now) {
  bool any = false;
  while (Jetty* const jetty = order_.take_jetty()) {
    if (jetty->state == JettyState::suspended) withdrawals_.end_cancelled(*jetty, now);
    while (const auto lease = order_.release(*jetty)) {
      jetty->works[*lease].progress = now;
      start(*jetty, *lease, now);
      // While all works were held, no timer ran.
      if (jetty->oldest != Queues::none) {
        works_.look_no_later(*jetty, now + jetty->timeouts.operation);
      }
      any = true;
    }
  }
  return any;
}

// ---- peers

void Initiator::delivered(transport::SliceRef ref, Time now) {
  if (Slice* const slice = slices_.find(ref)) events_.delivered(*slice, now);
}

void Initiator::up(PeerState& peer, Time now) {
  for (uint32_t i = peer.first_flow; i != Flow::none; i = flows_.at(i).next_of_peer) {
    events_.channel_began(flows_.at(i), now);
  }
}

void Initiator::down(PeerState& peer, transport::Why why, Time now) {
  using transport::Why;
  const bool over = ends_incarnation(why);
  const bool unreachable = why == Why::unreachable || why == Why::refused || why == Why::no_room;
  const SliceEvent verdict = over ? SliceEvent::peer_over : SliceEvent::unreachable;
  const bool may_return = !over && !unreachable;
  peer.channel = nullptr;
  peer.reads_out = 0;
  lights_.record_of(peer, now);
  if (!may_return) carried_.peer_lost(peer.id, now);
  for (uint32_t i = peer.first_flow; i != Flow::none; i = flows_.at(i).next_of_peer) {
    Flow& flow = flows_.at(i);
    events_.channel_ended(flow, may_return, verdict, now);
    if (!may_return) withdrawals_.clear_line(flow, verdict, now);
    // Only flows that still have works ask for a new channel. Otherwise refusals would be repeated
    // for ever.
    if (over) continue;
    if (!slices_.only_tombstones(flow.last_slice)) flows_.activate(flow);
    flows_.resume(flow);
  }
  if (over) flows_.part_from(peer);
}

// ---- time

void Initiator::handle_timers(Time now) {
  events_.handle_timers(now);
  std::array<uint32_t, jetties_at_a_time> due;
  const size_t count = works_.due(now, due);
  for (const uint32_t index : std::span(due).first(count)) {
    if (!jetties_.live(index)) continue;
    lights_.record(jetties_.at(index), now);
    withdrawals_.check_deadline(jetties_.at(index), now);
  }
}

}  // namespace urma::jetty
