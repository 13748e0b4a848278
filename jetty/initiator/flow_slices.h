// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/assert.h"
#include "base/slab.h"
#include "jetty/initiator/flows.h"

namespace urma::jetty {

// Stores the slices of all flows. The outstanding slices of a flow, tombstones included, are a list
// in the order of their TASSNs, which are given here. It does not change the state of a slice. The
// Initiator owns it; only the thread that runs the engine calls it.
class FlowSlices {
 public:
  FlowSlices(uint32_t capacity, Flows& flows);

  uint32_t capacity() const { return slices_.capacity(); }
  // Slices for which room is reserved count, too.
  uint32_t size() const { return slices_.size() + reserved_; }
  bool full() const { return size() == capacity(); }
  bool live(uint32_t index) const { return slices_.live(index); }
  Slice& at(uint32_t index) { return slices_.at(index); }
  uint32_t index_of(const Slice& slice) const { return slices_.index_of(&slice); }
  // Returns null if the slice, or this attempt to send it, is over.
  Slice* find(transport::SliceRef ref);
  Slice* find(const Flow& flow, Tassn tassn);
  // Returns the work's berth. The work has not ended.
  const Berth& berth_of(const Slice& slice) const {
    return flows_.jetty_of(flows_.at(slice.flow)).queues->jfs().berth(slice.berth);
  }
  bool is_read(const Slice& slice) const { return berth_of(slice).operation == Operation::read; }

  // ---- from when a slice is cut

  // Returns a slice that is in no list yet, or null if there are `capacity`.
  Slice* create() { return full() ? nullptr : slices_.create(); }
  // Reserves room for slices, of which there is enough, or gives it back.
  void reserve(uint32_t count) { reserved_ += count; }
  void give_back(uint32_t count) { reserved_ -= count; }
  void discard(Slice& slice) { slices_.destroy(&slice); }
  // Appends the slice to the flow's list, and gives it the next TASSN. That happens when a channel
  // has accepted the slice, not when it is cut.
  void append(Flow& flow, Slice& slice) {
    URMA_ASSERT(flow.light.count == 0, "light works have the newest TASSNs of their flow");
    append(flow, slice, take_tassn(flow));
  }
  // The same for a slice that has been given the next TASSN of the list before.
  void append(Flow& flow, Slice& slice, Tassn tassn);
  // Destroys the slice. Returns whether it was the oldest of its flow, so that the window of TASSNs
  // moves on.
  bool erase(Slice& slice);
  // Returns whether one more slice of the flow may have a TASSN.
  bool window_open(const Flow& flow, const PeerState& peer) const;
  // Returns whether this slice and all before it are tombstones.
  bool only_tombstones(uint32_t slice) const;

  // ---- atomics whose results the target keeps

  // Returns whether the target would still keep the oldest outstanding result after one more.
  bool results_open(const Flow& flow, const PeerState& peer) const;
  // Numbers the appended slice, if it is such an atomic.
  void note_atomic(Flow& flow, Slice& slice);
  // The slice is a tombstone now. Another atomic may be the oldest.
  void atomic_decided(Flow& flow, const Slice& slice);

 private:
  static Tassn take_tassn(Flow& flow) {
    const Tassn taken = flow.next_tassn;
    ++flow.next_tassn;
    return taken;
  }

  Flows& flows_;
  Slab<Slice> slices_;
  uint32_t reserved_ = 0;
};

}  // namespace urma::jetty
