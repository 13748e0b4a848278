// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/flat_map.h"
#include "base/slab.h"
#include "base/turns.h"
#include "jetty/flow.h"
#include "jetty/initiator/common.h"

namespace urma::jetty {

// The flows of all Jetties: which one leads to a peer, which works are in line in it to be cut, and
// which flows take a turn at cutting. It does not know why a work is in line, nor slices. The
// Initiator owns it; only the thread that runs the engine calls it.
class Flows {
 public:
  Flows(uint32_t capacity, const InitiatorCommon& common);

  Flow& at(uint32_t index) { return flows_.at(index); }
  const Flow& at(uint32_t index) const { return flows_.at(index); }
  uint32_t index_of(const Flow& flow) const { return flows_.index_of(&flow); }
  // Returns the flow's Jetty, which exists.
  Jetty& jetty_of(const Flow& flow) const { return jetties_.at(flow.jetty); }

  // ---- which flow leads to a peer

  // Returns the Jetty's first flow, usually its only one, or null if that flow leads to another
  // peer.
  Flow* first_of(const Jetty& jetty, PeerId peer) {
    if (jetty.first_flow == Flow::none) return nullptr;
    Flow& first = flows_.at(jetty.first_flow);
    return first.peer == peer && !first.peer_over ? &first : nullptr;
  }
  // Returns null if the Jetty has no flow to this peer.
  Flow* find(const Jetty& jetty, PeerId peer);
  // Returns the flow that a peer names in an answer, or null if there is none.
  Flow* find(PeerId peer, uint32_t rc_id);
  // Returns the Jetty's flow to this peer, which is made if there is none; null, and the reason, if
  // it cannot be made.
  Flow* find_or_make(Jetty& jetty, PeerId peer, Status& why_not);
  // The Jetty is about to be destroyed. Its flows stay, without it.
  void detach(Jetty& jetty);
  // The peer's incarnation is over: its flows are only kept until their slices have settled.
  void part_from(PeerState& peer);
  // Destroys a flow that has no slice left, after its peer's incarnation has ended.
  [[gnu::cold]] void retire(Flow& flow);

  // ---- turns

  void activate(const Flow& flow) { active_.add(index_of(flow)); }
  // Activates the flow if works are in line in it: what they have waited for may have happened.
  void resume(const Flow& flow) {
    if (flow.first_to_cut != Queues::none) activate(flow);
  }
  // Returns how many flows may have works to cut.
  uint32_t active() const { return active_.size(); }
  Flow& take_active() { return flows_.at(active_.take()); }

  // ---- the works in line

  // `first`: before the works that are in line already.
  void put_in_line(Flow& flow, Jetty& jetty, uint16_t lease, bool first);
  void take_out_of_line(Flow& flow, Jetty& jetty, uint16_t lease);

 private:
  static uint64_t key(PeerId peer, uint32_t rc_id) { return uint64_t{peer.index} << 32 | rc_id; }
  Flow* make(Jetty& jetty, PeerId peer);

  Jetties& jetties_;
  PeerStates& peers_;
  transport::Channels& channels_;
  Slab<Flow> flows_;
  FlatMap<uint64_t> by_key_;  // peer index and RC id
  Turns active_;
};

}  // namespace urma::jetty
