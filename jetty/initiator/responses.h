// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "jetty/initiator/light_works.h"
#include "jetty/initiator/slice_events.h"
#include "wire/ta_chain.h"

namespace urma::jetty {

// Handles the responses of targets: finds the slices that a response answers, stores the data that
// it brings, and reports what it says about each slice. The Initiator owns it; only the thread that
// runs the engine calls it.
class Responses {
 public:
  Responses(const InitiatorCommon& common, const SliceEvents::Uses& uses, SliceEvents& events,
            LightWorks& lights);

  void handle(PeerId peer, const ParsedResponse& response, Time now);

 private:
  void handle_answer(Flow& flow, const Atah& answer, Time now);
  void handle_for(Slice& slice, Flow& flow, const Atah& answer, Time now);
  uint32_t end_executed(Flow& flow, Tassn first, Tassn last, Time now);
  // Returns the slice that a response with data answers. Counts a late answer, ends the tombstone
  // that waited for it, and returns null.
  Slice* find_answered(Flow& flow, const ParsedResponse& response);
  void handle_read(Flow& flow, const ParsedResponse& response, Time now);
  [[gnu::cold]] bool place_staged(Slice& slice, std::span<const Piece> pieces, uint32_t at,
                                  std::span<const std::byte> data);
  void handle_atomic(Flow& flow, const ParsedResponse& response, Time now);

  PeerStates& peers_;
  InitiatorCounters& counters_;
  Flows& flows_;
  FlowSlices& slices_;
  Offers& offers_;
  WorkOrder& order_;
  OpenWorks& works_;
  SliceEvents& events_;
  LightWorks& lights_;
  Staging& staging_;
};

}  // namespace urma::jetty
