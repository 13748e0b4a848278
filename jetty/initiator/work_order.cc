// SPDX-License-Identifier: Apache-2.0
#include "jetty/initiator/work_order.h"

#include "jetty/parking.h"

namespace urma::jetty {

WorkOrder::WorkOrder(uint32_t jetties, const InitiatorCommon& common, Flows& flows)
    : jetties_(common.jetties),
      peers_(common.peers),
      counters_(common.counters),
      flows_(flows),
      to_release_(jetties) {}

// Returns the work's group: works that one target can order, because it sees all of them arrive in
// the order of their numbers. It does not see works to other targets, copied works, the last slice
// of a notifying write that waits for its others, or when the data of a read has arrived here.
uint32_t WorkOrder::group_of(const Jetty& jetty, const Berth& berth) {
  constexpr uint32_t none = ordering::SubmitGate::no_group;
  if (jetty.ordering.mode == ServiceMode::initiator) return none;
  if (berth.operation == Operation::read) return none;
  if (notifies(berth) && berth.bytes > shortest_cut_bytes) return none;
  if (berth.bytes > Parking::bytes_always || is_mapped(berth)) return none;
  const Flow* const flow = flows_.find(jetty, berth.peer);
  return flow != nullptr && flow->sequence == Sequence::kept ? flows_.index_of(*flow) + 1 : none;
}

bool WorkOrder::may_begin(Jetty& jetty, uint16_t lease) {
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

void WorkOrder::left(Jetty& jetty, uint16_t lease) {
  jetty.queues->jfs().submit_gate().done(jetty.queues->jfs().submit_slots(), lease);
  jetty.works[lease].held = false;
  look_again(jetty);
}

Jetty* WorkOrder::take_jetty() {
  while (to_release_.size() > 0) {
    const uint32_t index = to_release_.take();
    if (jetties_.live(index)) return &jetties_.at(index);
  }
  return nullptr;
}

std::optional<uint16_t> WorkOrder::release(Jetty& jetty) {
  if (!jetty.gated) return std::nullopt;
  ordering::SubmitGate& gate = jetty.queues->jfs().submit_gate();
  const auto lease = gate.next_released(jetty.queues->jfs().submit_slots(),
                                        {.works = jetty.outstanding, .fetching = jetty.fetching});
  jetty.gated = gate.busy();
  if (lease) jetty.works[*lease].held = false;
  return lease;
}

Order WorkOrder::order_of(const Jetty& jetty, const Berth& berth, const Flow& flow) {
  if (flow.sequence == Sequence::kept && group_of(jetty, berth) == ordering::SubmitGate::no_group) {
    return Order::relaxed;
  }
  return jetty.ordering.chain ? Order::strong : berth.order;
}

bool WorkOrder::asks_sequence(const Flow& flow, const Jetty& jetty, const Berth& berth) {
  return berth.order != Order::none && flow.sequence == Sequence::none &&
         jetty.ordering.mode != ServiceMode::initiator && peers_.at(flow.peer).facts.sequences;
}

void WorkOrder::note_sequence(Slice& slice, bool kept) {
  if (!slice.asks) return;
  Flow& flow = flows_.at(slice.flow);
  if (kept) {
    flow.sequence = Sequence::kept;
  } else if (flow.sequence == Sequence::asking) {
    flow.sequence = Sequence::none;
  }
  slice.asks = false;
  flows_.resume(flow);
}

}  // namespace urma::jetty
