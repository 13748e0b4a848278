// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rte_mbuf.h>

#include <atomic>

#include "base/assert.h"
#include "base/region.h"

namespace urma::drivers::dpdk {

// The sent frames whose pieces the port may still read, in the order in which they were sent. Each
// has a count of references: one of this object, and one of each buffer that names a piece. A port
// frees the buffers of a packet when it has read them, whenever and on whichever thread that is; so
// the frame is done when the first reference is the only one. Owned by the packet port, and must
// outlive the port of DPDK; used by one thread at a time.
class GatheredFrames {
 public:
  static constexpr uint32_t most = 1024;

  GatheredFrames() : frames_(most) {}

  bool empty() const { return first_ == end_; }
  bool full() const { return end_ - first_ == most; }
  // Adds the frame with this number, counted from 0 in the order of sending. Returns what its
  // buffers refer to.
  rte_mbuf_ext_shared_info& add(uint64_t number) {
    URMA_ASSERT(!full(), "there is room for another gathered frame");
    Frame& frame = at(end_++);
    frame.number = number;
    frame.shared.free_cb = [](void*, void*) {};  // never called, because of our own reference
    frame.shared.fcb_opaque = nullptr;
    rte_mbuf_ext_refcnt_set(&frame.shared, 1);
    return frame.shared;
  }
  // Takes back the latest one, which the port has not taken, and whose buffers are free.
  void drop_latest() { --end_; }

  // Returns the number of frames, of the first `sent` ones, in front of the first that the port may
  // still read.
  uint64_t settle(uint64_t sent) {
    while (!empty() && rte_mbuf_ext_refcnt_read(&at(first_).shared) == 1) ++first_;
    // The port's reads happened before what the owner of the memory does next.
    std::atomic_thread_fence(std::memory_order_acquire);
    return empty() ? sent : at(first_).number;
  }

 private:
  struct Frame {
    rte_mbuf_ext_shared_info shared;
    uint64_t number;
  };
  Frame& at(uint64_t i) { return frames_[i % most]; }

  RegionArray<Frame> frames_;  // a ring
  uint64_t first_ = 0;
  uint64_t end_ = 0;
};

}  // namespace urma::drivers::dpdk
