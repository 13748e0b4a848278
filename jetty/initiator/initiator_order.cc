// Decides which works wait for which, and whether the initiator or the target keeps their order.

#include "jetty/initiator/initiator.h"
#include "jetty/parking.h"
#include "jetty/slicer.h"

namespace urma::jetty {

// Returns the work's group: works that one target can order, because it sees all of them arrive in
// the order of their numbers. It does not see works to other targets, copied works, the last slice
// of a notifying write that waits for its others, or when the data of a read has arrived here.
uint32_t Initiator::group_of(const Jetty& jetty, const Berth& berth) {
  constexpr uint32_t none = ordering::SubmitGate::no_group;
  if (jetty.ordering.mode == ServiceMode::initiator) return none;
  if (berth.operation == Operation::read) return none;
  if (notifies(berth) && berth.bytes > shortest_cut_bytes) return none;
  if (berth.bytes > Parking::bytes_always || is_mapped(berth)) return none;
  const Flow* const flow = find_flow(jetty, berth.peer);
  return flow != nullptr && flow->sequence == Sequence::kept ? index_of(*flow) + 1 : none;
}

// Returns the order that is sent to the target. A work that has waited here for all works that it
// must follow is not sent as strong any more.
Order Initiator::order_of(const Jetty& jetty, const Berth& berth, const Flow& flow) {
  if (flow.sequence == Sequence::kept && group_of(jetty, berth) == ordering::SubmitGate::no_group) {
    return Order::relaxed;
  }
  return jetty.ordering.chain ? Order::strong : berth.order;
}

// Sets the order in the only packet of a slice that is about to be made.
void Initiator::put_order(SlicePacket& packet, const Flow& flow, const Jetty& jetty,
                          uint16_t lease) {
  const Berth& berth = packet.berth;
  packet.in_context = flow.sequence == Sequence::kept;
  packet.allocate =
      packet.in_context ? only_tombstones(flow.last_slice) : asks_sequence(flow, jetty, berth);
  if (berth.order != Order::none) packet.order = jetty.works[lease].order;
}

bool Initiator::may_begin(Jetty& jetty, uint16_t lease) {
  const Berth& berth = jetty.queues->jfs().berth(lease);
  const bool chained = jetty.ordering.chain && berth.order == Order::relaxed;
  const bool fetching = fetches(berth);
  const ordering::SubmitGate::Work asked{.order = chained ? Order::strong : berth.order,
                                         .fence = berth.fence,
                                         .fetches = fetching,
                                         .group = group_of(jetty, berth)};
  ordering::SubmitGate& gate = jetty.queues->jfs().submit_gate();
  const ordering::SubmitGate::Open before{.works = jetty.outstanding - 1,
                                          .fetching = jetty.fetching - uint32_t{fetching}};
  const bool begins = gate.posted(jetty.queues->jfs().submit_slots(), lease, asked, before);
  jetty.gated = gate.busy();
  jetty.works[lease].held = !begins;
  counters_.held += !begins;
  return begins;
}

void Initiator::left_gate(Jetty& jetty, uint16_t lease) {
  jetty.queues->jfs().submit_gate().done(jetty.queues->jfs().submit_slots(), lease);
  jetty.works[lease].held = false;
  to_release_.add(jetties_.index_of(jetty));
}

// Begins works that need not wait any more. Not called where works end, because other works are
// being processed there.
bool Initiator::release(Time now) {
  bool any = false;
  while (to_release_.size() > 0) {
    const uint32_t index = to_release_.take();
    if (!jetties_.live(index)) continue;
    Jetty& jetty = jetties_.at(index);
    if (jetty.state == JettyState::suspended) sweep_jetty(jetty, now);
    ordering::SubmitGate& gate = jetty.queues->jfs().submit_gate();
    const auto next = [&] {
      return gate.next_released(jetty.queues->jfs().submit_slots(),
                                {.works = jetty.outstanding, .fetching = jetty.fetching});
    };
    while (jetty.gated) {
      const auto lease = next();
      jetty.gated = gate.busy();
      if (!lease) break;
      jetty.works[*lease].held = false;
      jetty.works[*lease].progress = now;
      start(jetty, *lease, now);
      // While all works were held, no timer ran.
      if (jetty.oldest != Queues::none) {
        jetty_timers_.arm_no_later(index, now + jetty.timeouts.operation);
      }
      any = true;
    }
  }
  return any;
}

// Ends works that were cancelled before they began.
void Initiator::end_held(Jetty& jetty, Time now) {
  for (uint16_t i = jetty.oldest; i != Queues::none;) {
    const uint16_t lease = i;
    WorkState& work = jetty.works[lease];
    i = work.newer;
    if (work.held && work.cancelled) finish(jetty, lease, Status::flushed, false, now);
  }
}

// Records whether the target keeps order, as its answer says, or that the slice ended without an
// answer.
void Initiator::note_sequence_answer(Slice& slice, bool kept) {
  if (!slice.asks) return;
  Flow& flow = flows_.at(slice.flow);
  if (kept) {
    flow.sequence = Sequence::kept;
  } else if (flow.sequence == Sequence::asking) {
    flow.sequence = Sequence::none;
  }
  slice.asks = false;
  if (flow.first_to_cut != Queues::none) activate(flow);
}

void Initiator::suspend(Jetty& jetty, Time now) {
  if (jetty.state != JettyState::ready) return;
  jetty.state = JettyState::suspended;
  for (uint16_t i = jetty.oldest; i != Queues::none; i = jetty.works[i].newer) {
    cancel(jetty.works[i], now);
  }
  to_release_.add(jetties_.index_of(jetty));
}

}  // namespace urma::jetty
