// SPDX-License-Identifier: Apache-2.0
#include "jetty/initiator/flow_slices.h"

namespace urma::jetty {

FlowSlices::FlowSlices(uint32_t capacity, Flows& flows) : flows_(flows), slices_(capacity) {}

Slice* FlowSlices::find(transport::SliceRef ref) {
  if (!slices_.live(ref.slot)) return nullptr;
  Slice& slice = slices_.at(ref.slot);
  return slice.serial == ref.generation ? &slice : nullptr;
}

Slice* FlowSlices::find(const Flow& flow, Tassn tassn) {
  for (uint32_t i = flow.first_slice; i != Slice::none; i = slices_.at(i).next) {
    Slice& slice = slices_.at(i);
    if (slice.tassn >= tassn) return slice.tassn == tassn ? &slice : nullptr;
  }
  return nullptr;
}

void FlowSlices::append(Flow& flow, Slice& slice, Tassn tassn) {
  slice.flow = flows_.index_of(flow);
  slice.tassn = tassn;
  slice.previous = flow.last_slice;
  const uint32_t index = index_of(slice);
  (flow.last_slice != Slice::none ? slices_.at(flow.last_slice).next : flow.first_slice) = index;
  flow.last_slice = index;
  if (slice.asks) flow.sequence = Sequence::asking;
}

bool FlowSlices::erase(Slice& slice) {
  Flow& flow = flows_.at(slice.flow);
  const bool oldest = slice.previous == Slice::none;
  (oldest ? flow.first_slice : slices_.at(slice.previous).next) = slice.next;
  (slice.next != Slice::none ? slices_.at(slice.next).previous : flow.last_slice) = slice.previous;
  slices_.destroy(&slice);
  return oldest;
}

bool FlowSlices::window_open(const Flow& flow, const PeerState& peer) const {
  if (flow.sequence == Sequence::asking) return false;
  if (flow.first_slice == Slice::none && flow.light.count == 0) return true;
  const Tassn oldest =
      flow.first_slice != Slice::none ? slices_.at(flow.first_slice).tassn : flow.light.first;
  return flow.next_tassn - oldest < peer.facts.tassn_window;
}

bool FlowSlices::only_tombstones(uint32_t slice) const {
  while (slice != Slice::none && slices_.at(slice).is_tombstone()) {
    slice = slices_.at(slice).previous;
  }
  return slice == Slice::none;
}

bool FlowSlices::results_open(const Flow& flow, const PeerState& peer) const {
  return flow.first_atomic == Slice::none ||
         flow.atomics + 1 - slices_.at(flow.first_atomic).atomic < peer.facts.atomic_results;
}

void FlowSlices::note_atomic(Flow& flow, Slice& slice) {
  if (!keeps_result(berth_of(slice))) return;
  if (++flow.atomics == 0) ++flow.atomics;  // wrapped after 2^32: zero means none
  slice.atomic = flow.atomics;
  if (flow.first_atomic == Slice::none) flow.first_atomic = index_of(slice);
}

void FlowSlices::atomic_decided(Flow& flow, const Slice& slice) {
  if (flow.first_atomic != index_of(slice)) return;
  uint32_t next = slice.next;
  const auto open = [&](const Slice& other) { return other.atomic != 0 && !other.is_tombstone(); };
  while (next != Slice::none && !open(slices_.at(next))) next = slices_.at(next).next;
  flow.first_atomic = next;
  flows_.resume(flow);
}

}  // namespace urma::jetty
