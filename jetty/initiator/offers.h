// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "jetty/initiator/flow_slices.h"

namespace urma::jetty {

// The slices that channels have, or are about to get: offers them within each flow's share of the
// channel's queue, and counts the answers that a channel expects. It does not change the state of a
// slice. The Initiator owns it; only the thread that runs the engine calls it.
class Offers {
 public:
  Offers(const InitiatorCommon& common, Flows& flows, FlowSlices& slices);

  // Returns the cost that the flow may have in the channel's queue, given the other flows there;
  // `slice`: the cost of its next slice.
  static uint32_t share_of(const Flow& flow, const Jetty& jetty, const PeerState& peer,
                           uint32_t slice);
  // Returns false if the channel has no room.
  bool offer(Slice& slice, Flow& flow, PeerState& peer, Time now);
  // The slice was sent past the queue.
  void note_sent(Slice& slice, PeerState& peer, bool read, Time now) {
    begin_attempt(slice);
    expect(slice, peer, read, now);
  }
  // Offers the slice when its flow has its next turn.
  void offer_later(Slice& slice);
  // Offers the slices of which this was requested.
  [[gnu::cold]] void offer_delayed(Flow& flow, PeerState& peer, Time now);
  // All packets of the slice were pulled, or it is not needed any more.
  void leave(Slice& slice);
  // Begins another attempt to send the slice: repeated packets of the last one are sent without
  // content from now on.
  void begin_attempt(Slice& slice) { slice.serial = next_serial_++; }
  // No more answer to the slice is expected.
  void stop_expecting(Slice& slice, Time now);

 private:
  static uint32_t cost_of(const Slice& slice);
  void expect(Slice& slice, PeerState& peer, bool read, Time now) {
    slice.expected = true;
    peer.channel->expect_answers(1, now);
    if (read) ++peer.reads_out;
  }

  PeerStates& peers_;
  Flows& flows_;
  FlowSlices& slices_;
  uint32_t next_serial_ = 1;
};

}  // namespace urma::jetty
