// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "jetty/initiator/offers.h"
#include "jetty/initiator/open_works.h"

namespace urma::jetty {

// Works of which nothing is recorded but a count for each Jetty, because each was sent in one
// packet that has arrived, brings nothing back, and nothing has gone wrong: as long as answers come
// in order and say "executed", the works end in order. They are consecutive in their Jetty's send
// queue, in post order, and have consecutive TASSNs, the newest ones of their flow. Whatever else
// happens to the Jetty, its flow, or its peer, must first call `record`: then they are open works
// with slices, as if they never had been light. That costs what recording them at once would cost,
// so a Jetty gains nothing that uses several peers in turn, or mixes its messages with writes. The
// Initiator owns it; only the thread that runs the engine calls it.
class LightWorks {
 public:
  LightWorks(const InitiatorCommon& common, Flows& flows, FlowSlices& slices, Offers& offers,
             OpenWorks& works);

  // The posted work that is taken next may be sent in one packet, to the Jetty's first flow.
  // Returns whether it can be light then.
  bool takes(const Jetty& jetty, const Flow& flow, const Berth& berth) const {
    return !flow.peer_over && peers_.at(flow.peer).writes_at_once && !fetches(berth) &&
           berth.order == Order::none && jetty.gate.idle() && !jetty.ordering.in_order &&
           !jetty.ordering.suspend_on_error && flow.sequence != Sequence::kept &&
           jetty.first_flow == flows_.index_of(flow);
  }
  // It was sent.
  void add(Flow& flow, Jetty& jetty, Time now);
  // The slices from `first` to `last` of this flow were executed. Returns whether that has ended
  // light works, and only these. If other slices are concerned, too, all are recorded.
  bool end_executed(Flow& flow, Tassn first, Tassn last, Time now);

  // Records the light works of the Jetty, those to the peer, or all.
  void record(Jetty& jetty, Time now) {
    if (Flow* const flow = flow_of(jetty)) record(*flow, jetty, now);
  }
  [[gnu::cold]] void record_of(const PeerState& peer, Time now);
  [[gnu::cold]] void record_all(Time now);

 private:
  Flow* flow_of(const Jetty& jetty) {
    if (jetty.first_flow == Flow::none) return nullptr;
    Flow& first = flows_.at(jetty.first_flow);
    return first.light.count > 0 ? &first : nullptr;
  }
  [[gnu::cold]] void record(Flow& flow, Jetty& jetty, Time now);

  Jetties& jetties_;
  PeerStates& peers_;
  InitiatorCounters& counters_;
  Flows& flows_;
  FlowSlices& slices_;
  Offers& offers_;
  OpenWorks& works_;
};

}  // namespace urma::jetty
