#pragma once

#include "jetty/initiator/copier.h"
#include "jetty/initiator/slice_events.h"
#include "transport/upper.h"

namespace urma::jetty {

struct SlicePacket;

// Cuts works into slices and writes their packets. A slice is copied, if the target's memory is
// mapped; written at once, if it is small and nothing is before it; or else offered to the channel,
// which asks for its packets later. It handles no ends of slices. The Initiator owns it; only the
// thread that runs the engine calls it.
class Cutter {
 public:
  struct Uses {
    SliceEvents::Uses parts;
    SliceEvents& events;
    Copier& copier;
  };
  Cutter(const InitiatorCommon& common, const Uses& uses);

  // Cuts slices of the works in line, at most `budget`, where a large copy counts as several.
  // Returns false if it could do nothing.
  bool cut(uint32_t budget, Time now);
  // Cuts the first slice of a work that has just begun, usually its only one, if no other work is
  // before it. Large works take their turn.
  void cut_first(Flow& flow, Jetty& jetty, uint16_t lease, Time now);
  // Does the same for the posted work that will be taken next, before anything is recorded. Returns
  // false if it did nothing; else `cut_first` must follow for that work.
  bool cut_ahead(Jetty& jetty);
  // Returns whether `cut_first` is still to follow.
  bool is_ahead() const { return ahead_.lease != Queues::none; }
  // Writes a packet that the channel asks for.
  void write(transport::PacketSlot& packet);

 private:
  enum class Cut : uint8_t { done, blocked, no_memory };
  // The part of a work that `cut_ahead` has done.
  struct Ahead {
    uint16_t lease = Queues::none;
    uint32_t copied = 0;  // bytes
    bool sent = false;    // the rest was sent
  };

  Cut cut_one(Flow& flow, Jetty& jetty, uint16_t lease, PeerState& peer, Time now);
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
  Ahead ahead_;
};

}  // namespace urma::jetty
