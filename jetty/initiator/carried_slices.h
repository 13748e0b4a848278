// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/slab.h"
#include "jetty/carrier.h"
#include "jetty/initiator/open_works.h"

namespace urma::jetty {

// The slices that a device carries by itself, without packets. They have no TASSN. A slice that the
// device could not carry may nevertheless have been executed, or still be on its way: its work
// begins again in packets once nothing of it can arrive any more, because writes and reads may be
// repeated as long as the work has not ended. The Initiator owns it; only the thread that runs the
// engine calls it.
class CarriedSlices {
 public:
  CarriedSlices(uint32_t capacity, const InitiatorCommon& common, Flows& flows, OpenWorks& works);

  // With null, nothing is carried.
  void set_carrier(Carrier* carrier) { carrier_ = carrier; }

  using Begun = Carrier::Begun;
  // Hands the next bytes of a work to the device as a slice. If the answer is `full`, the flow is
  // activated when another slice has ended, and the caller tries again.
  Begun begin(Flow& flow, Jetty& jetty, uint16_t lease, Time now) {
    return carrier_ != nullptr ? begin_at_device(flow, jetty, lease, now) : Begun::none;
  }

  // The device accesses no memory for this slice any longer. `done`: all of it was carried.
  void ended(uint32_t slice, bool done, Time now);
  // Nothing that the device began to carry to this peer before can arrive any more.
  void fenced(PeerId peer, Time now);
  // Returns the peer of a slice that has not ended.
  PeerId peer_of(uint32_t slice) const { return flows_.at(slices_.at(slice).flow).peer; }

  // Returns the number of the latest slice. Slices are numbered in the order in which they begin.
  uint64_t latest() const { return latest_; }
  // Returns whether the device still accesses local memory for a slice with this number or a lower
  // one.
  bool at_device_up_to(uint64_t number);

  // Ends the slices of cancelled works of this Jetty. Slices that the device is carrying end by
  // themselves, or, if the work is overdue, because the device is stopped.
  void end_cancelled(Jetty& jetty, Time now);
  // The peer is over or cannot be reached: nothing is sent to it again.
  void peer_lost(PeerId peer, Time now);

 private:
  static constexpr uint32_t most_of_flow = 16;

  struct Carried {
    uint64_t number;
    uint32_t flow;
    uint32_t bytes;
    uint16_t berth;
    bool failed = false;    // the device has given it up; what it sent may still arrive
    bool given_up = false;  // its work does not begin again, because the peer is lost
  };

  Begun begin_at_device(Flow& flow, Jetty& jetty, uint16_t lease, Time now);
  void end(Carried& slice, Status status, bool answered, Time now);
  void make_room(PeerId peer);
  template <class Function>
  void for_each_to(PeerId peer, Function&& function);

  PeerStates& peers_;
  InitiatorCounters& counters_;
  Flows& flows_;
  OpenWorks& works_;
  Carrier* carrier_ = nullptr;
  Slab<Carried> slices_;
  uint64_t latest_ = 0;
};

}  // namespace urma::jetty
