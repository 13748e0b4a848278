// SPDX-License-Identifier: Apache-2.0
#include "jetty/initiator/offers.h"

#include <algorithm>

namespace urma::jetty {
namespace {

// The cost that all usual flows together, and all urgent ones, may have in a channel's queue: two
// full slices, or 64 small ones. Each flow may have its part of that, or one slice, so that flows
// take turns.
constexpr uint32_t most_offered_cost = 2 * slice_bytes;
static_assert(most_offered_cost == 64 * transport::least_slice_cost);

}  // namespace

Offers::Offers(const InitiatorCommon& common, Flows& flows, FlowSlices& slices)
    : peers_(common.peers), flows_(flows), slices_(slices) {}

uint32_t Offers::cost_of(const Slice& slice) {
  return std::max(slice.bytes, transport::least_slice_cost);
}

uint32_t Offers::share_of(const Flow& flow, const Jetty& jetty, const PeerState& peer,
                          uint32_t slice) {
  const uint32_t weight = jetty.ordering.weight;
  // Its slices in the queue may be those of an earlier Jetty with this number, of another class and
  // weight.
  const bool urgent = flow.offering != 0 ? flow.urgent : jetty.ordering.urgent;
  const uint32_t all = peer.offering[urgent] - flow.offering + weight;
  if (all == weight) return most_offered_cost;
  return std::max(most_offered_cost / all, slice) * weight;
}

bool Offers::offer(Slice& slice, Flow& flow, PeerState& peer, Time now) {
  const bool tombstone = slice.is_tombstone();
  const bool read = !tombstone && slices_.is_read(slice);
  const uint32_t serial = next_serial_;
  const uint32_t payload = tombstone || read ? 0 : slice.bytes;
  const bool alone = flow.jetty == Flow::none;
  const bool urgent =
      flow.offering != 0 ? flow.urgent : !alone && flows_.jetty_of(flow).ordering.urgent;
  const auto traffic = urgent ? transport::Class::urgent : transport::Class::request;
  if (!peer.channel->offer({slices_.index_of(slice), serial}, traffic, payload)) return false;
  begin_attempt(slice);
  slice.in_offer = true;
  if (flow.offering == 0) {
    flow.offering = alone ? uint8_t{1} : flows_.jetty_of(flow).ordering.weight;
    flow.urgent = urgent;
    peer.offering[urgent] += flow.offering;
  }
  flow.offered_cost += cost_of(slice);
  if (!slice.expected && !tombstone) expect(slice, peer, read, now);
  return true;
}

void Offers::leave(Slice& slice) {
  if (!slice.in_offer) return;
  slice.in_offer = false;
  Flow& flow = flows_.at(slice.flow);
  flow.offered_cost -= cost_of(slice);
  if (flow.offered_cost == 0) {
    if (PeerState* peer = peers_.find(flow.peer)) peer->offering[flow.urgent] -= flow.offering;
    flow.offering = 0;
  }
  flows_.resume(flow);
}

void Offers::offer_later(Slice& slice) {
  Flow& flow = flows_.at(slice.flow);
  slice.waiting_to_offer = true;
  flow.to_reoffer = true;
  flows_.activate(flow);
}

void Offers::offer_delayed(Flow& flow, PeerState& peer, Time now) {
  flow.to_reoffer = false;
  for (uint32_t i = flow.first_slice; i != Slice::none; i = slices_.at(i).next) {
    Slice& slice = slices_.at(i);
    if (!slice.waiting_to_offer) continue;
    if (!offer(slice, flow, peer, now)) return offer_later(slice);
    slice.waiting_to_offer = false;
  }
}

void Offers::stop_expecting(Slice& slice, Time now) {
  if (!slice.expected) return;
  slice.expected = false;
  // The peer has a channel: after the loss of a channel no answer is expected.
  PeerState& peer = peers_.at(flows_.at(slice.flow).peer);
  peer.channel->expect_answers(-1, now);
  if (!slices_.is_read(slice)) return;
  // Flows may be waiting for their turn to read.
  if (peer.reads_out-- < peer.facts.reads) return;
  for (uint32_t i = peer.first_flow; i != Flow::none; i = flows_.at(i).next_of_peer) {
    flows_.resume(flows_.at(i));
  }
}

}  // namespace urma::jetty
