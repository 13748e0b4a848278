// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "jetty/initiator/carried_slices.h"
#include "jetty/initiator/copier.h"
#include "jetty/initiator/light_works.h"
#include "jetty/initiator/slice_events.h"
#include "transport/upper.h"

namespace urma::jetty {

struct SlicePacket;

// The part of a posted work that was done before anything was recorded of it.
struct DoneAhead {
  uint32_t copied_bytes = 0;
  bool sent = false;  // the rest was sent

  explicit operator bool() const { return copied_bytes > 0 || sent; }
};

// Cuts works into slices and writes their packets. A slice is copied, if the target's memory is
// mapped; carried by a device, if that can access the memory at both ends; written at once, if it
// is small and nothing is before it; or else offered to the channel, which asks for its packets
// later. It handles no ends of slices. The Initiator owns it; only the
// thread that runs the engine calls it.
class Cutter {
 public:
  struct Uses {
    SliceEvents::Uses parts;
    SliceEvents& events;
    Copier& copier;
    LightWorks& lights;
    CarriedSlices& carried;
  };
  Cutter(const InitiatorCommon& common, const Uses& uses);

  // Cuts slices of the works in line, at most `budget`, where a large copy counts as several.
  // Returns false if it could do nothing.
  bool cut(uint32_t budget, Time now);
  // Cuts the first slice of a work that has just begun, usually its only one, if no other work is
  // before it. Large works take their turn. `done`: what `cut_ahead` has done with this work.
  void cut_first(Flow& flow, Jetty& jetty, uint16_t lease, const DoneAhead& done, Time now);
  // Copies or sends the posted work that will be taken next, if `cut_first` would do so. What it
  // returns must be passed on to `cut_first`.
  DoneAhead cut_ahead(const Jetty& jetty);
  // Sends the posted work that will be taken next, if no work must precede it and it is sent in one
  // packet, without a copy. Returns whether it did; if not, it has done nothing.
  bool send_light(const Jetty& jetty);
  // Writes packets of one slice that the channel asks for.
  void write(std::span<transport::PacketSlot> packets);

 private:
  enum class Cut : uint8_t { done, blocked, no_memory };

  bool stage(SlicePacket& packet);
  [[gnu::cold]] void give_up(Slice& slice, std::span<transport::PacketSlot> packets);
  void withdraw(Slice& slice, std::span<transport::PacketSlot> packets);
  Flow* flow_ahead(const Jetty& jetty);
  Cut cut_one(Flow& flow, Jetty& jetty, uint16_t lease, PeerState& peer, const DoneAhead& done,
              Time now);
  bool note_copied(Jetty& jetty, uint16_t lease, uint32_t bytes, Time now);
  Cut cut_slice(Flow& flow, Jetty& jetty, uint16_t lease, PeerState& peer, Time now);
  void append(Flow& flow, Slice& slice, Jetty& jetty, WorkState& work);
  bool write_at_once(const Flow& flow, const Jetty& jetty, uint16_t lease, uint32_t from,
                     const PeerState& peer);
  [[gnu::cold]] void put_order(SlicePacket& packet, const Flow& flow, const Jetty& jetty,
                               uint16_t lease);

  PeerStates& peers_;
  transport::Channels& channels_;
  InitiatorCounters& counters_;
  Flows& flows_;
  FlowSlices& slices_;
  Offers& offers_;
  WorkOrder& order_;
  OpenWorks& works_;
  SliceEvents& events_;
  Copier& copier_;
  LightWorks& lights_;
  CarriedSlices& carried_;
  Staging& staging_;
};

}  // namespace urma::jetty
