// SPDX-License-Identifier: Apache-2.0
#include "jetty/initiator/flows.h"

#include "base/assert.h"

namespace urma::jetty {

Flows::Flows(uint32_t capacity, const InitiatorCommon& common)
    : jetties_(common.jetties),
      peers_(common.peers),
      channels_(common.channels),
      flows_(capacity),
      by_key_(capacity),
      active_(capacity) {}

Flow* Flows::find(const Jetty& jetty, PeerId peer) {
  if (Flow* const first = first_of(jetty, peer)) return first;
  Flow* const known = find(peer, number(jetty.id));
  return known != nullptr && known->jetty == jetties_.index_of(jetty) ? known : nullptr;
}

Flow* Flows::find(PeerId peer, uint32_t rc_id) {
  const uint32_t index = by_key_.find(key(peer, rc_id));
  return index != by_key_.none && flows_.at(index).peer == peer ? &flows_.at(index) : nullptr;
}

Flow* Flows::find_or_make(Jetty& jetty, PeerId peer, Status& why_not) {
  if (Flow* const own = find(jetty, peer)) return own;
  if (!channels_.knows(peer)) {
    why_not = Status::peer_restarted;
    return nullptr;
  }
  const uint32_t known = by_key_.find(key(peer, number(jetty.id)));
  Flow* const flow = known != by_key_.none ? &flows_.at(known) : make(jetty, peer);
  if (flow == nullptr) {
    why_not = Status::no_resources;
    return nullptr;
  }
  flow->jetty = jetties_.index_of(jetty);
  flow->next_of_jetty = jetty.first_flow;
  jetty.first_flow = index_of(*flow);
  return flow;
}

Flow* Flows::make(Jetty& jetty, PeerId peer) {
  Flow* const flow = flows_.create();
  if (flow == nullptr) return nullptr;
  by_key_.insert(key(peer, number(jetty.id)), index_of(*flow));
  flow->peer = peer;
  flow->rc_id = number(jetty.id);
  PeerState& state = peers_.at(peer);
  flow->next_of_peer = state.first_flow;
  state.first_flow = index_of(*flow);
  return flow;
}

void Flows::detach(Jetty& jetty) {
  for (uint32_t i = jetty.first_flow; i != Flow::none;) {
    Flow& flow = flows_.at(i);
    i = flow.next_of_jetty;
    URMA_ASSERT(flow.light.count == 0, "a Jetty is destroyed only after its works have ended");
    flow.jetty = flow.next_of_jetty = Flow::none;
  }
  jetty.first_flow = Flow::none;
}

void Flows::part_from(PeerState& peer) {
  for (uint32_t i = peer.first_flow; i != Flow::none;) {
    Flow& flow = flows_.at(i);
    i = flow.next_of_peer;
    by_key_.erase(key(flow.peer, flow.rc_id));
    flow.next_of_peer = Flow::none;
    flow.peer_over = true;
    activate(flow);
  }
  peer.first_flow = Flow::none;
}

void Flows::retire(Flow& flow) {
  URMA_ASSERT(flow.first_to_cut == Queues::none, "a work in line ends with the peer");
  const uint32_t index = index_of(flow);
  if (flow.jetty != Flow::none) {
    Jetty& jetty = jetty_of(flow);
    uint32_t* link = &jetty.first_flow;
    while (*link != index) link = &flows_.at(*link).next_of_jetty;
    *link = flow.next_of_jetty;
  }
  flows_.destroy(&flow);
}

void Flows::put_in_line(Flow& flow, Jetty& jetty, uint16_t lease, bool first) {
  WorkState& work = jetty.works[lease];
  work.in_line = true;
  work.next_to_cut = first ? flow.first_to_cut : Queues::none;
  if (flow.first_to_cut == Queues::none) {
    flow.first_to_cut = flow.last_to_cut = lease;
  } else if (first) {
    flow.first_to_cut = lease;
  } else {
    jetty.works[flow.last_to_cut].next_to_cut = lease;
    flow.last_to_cut = lease;
  }
  activate(flow);
}

void Flows::take_out_of_line(Flow& flow, Jetty& jetty, uint16_t lease) {
  WorkState& work = jetty.works[lease];
  uint16_t before = Queues::none;
  for (uint16_t i = flow.first_to_cut; i != lease; i = jetty.works[i].next_to_cut) before = i;
  (before == Queues::none ? flow.first_to_cut : jetty.works[before].next_to_cut) = work.next_to_cut;
  if (flow.last_to_cut == lease) flow.last_to_cut = before;
  work.in_line = false;
}

}  // namespace urma::jetty
