// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "jetty/queues.h"
#include "jetty/slice_table.h"
#include "transport/channel.h"
#include "urma/core/time.h"
#include "wire/mapped_lane.h"

namespace urma::jetty {

inline constexpr uint32_t slice_bytes = 64 * 1024;
// Shorter works are never cut.
inline constexpr uint32_t shortest_cut_bytes = slice_bytes / 4;
// Budgets count so many copied bytes like one work, or one slice.
inline constexpr uint32_t copied_like_one = 4096;

// A part of a work, of at most slice_bytes, with a TASSN of its own.
struct Slice {
  static constexpr uint32_t none = UINT32_MAX;

  uint32_t serial = 0;            // identifies this attempt to the channel
  uint32_t flow = none;           // of its work; remains when the work has ended
  uint32_t previous = none;       // in the flow, in TASSN order
  uint32_t next = none;           // likewise
  Tassn tassn;                    // names it to the target, also when it is sent again
  uint32_t offset = 0;            // in the work
  uint32_t bytes = 0;             // of the work's data, sent or fetched
  uint32_t placed = 0;            // read: bytes that have arrived
  uint64_t last_written = 0;      // the fill in which a packet of it was last written
  uint16_t berth = Queues::none;  // the work's berth; none once the work has ended
  SliceState state = SliceState::offered;
  Status status = Status::ok;      // once decided
  bool keeps_tassn = false;        // once decided: it becomes a tombstone when the work has ended
  bool reports_cancelled = false;  // its cancellation is, or will be, reported to the target
  bool retry = false;              // sent with Retry = 1
  bool last = false;               // last of its work: carries an immediate or notification
  bool expected = false;           // counted among the answers that the channel expects
  bool in_offer = false;           // counted in the flow's offered cost
  bool waiting_to_offer = false;   // the channel had no room for it
  bool asks = false;               // it asks for a sequence context
  uint32_t atomic = 0;  // its number among the flow's atomics with results; 0 if it is not one
  uint8_t not_ready_times = 0;  // how often the receiver answered that it is not ready
  Time not_ready_since{};       // since its first such answer
  uint64_t copies = 0;          // read: the number of its copies to an accelerator; 0: none

  // Returns whether the slice's work has ended, so that the slice is kept only for its TASSN.
  bool is_tombstone() const { return berth == Queues::none; }
  void bury() { berth = Queues::none; }
};

// The works of a flow that are light (LightWorks).
struct LightRun {
  uint32_t count = 0;
  uint32_t position = 0;  // of the first one, in the order of the send queue
  Tassn first;            // of its only slice
};

// Whether a flow's target keeps the order of its slices.
enum class Sequence : uint8_t {
  none,     // the target has not been asked to keep it
  asking,   // the first ordered slice was sent; later ones wait for its answer
  kept,     // the target keeps it, in a sequence context
  refused,  // the target has no sequence context free
};

// The works of one Jetty to one peer, and the numbering of their slices (TASSN). A flow belongs to
// the queue's RC id and outlives the Jetty: numbering continues if the id is used again, because
// the target remembers executed slices by their numbers (docs/protocol.md). The flow ends with the
// peer's incarnation. `Flows` owns it; only the thread that runs the engine uses it.
struct Flow {
  static constexpr uint32_t none = no_flow;

  PeerId peer;                         // the target's device
  uint32_t rc_id = 0;                  // names the queue to the target
  uint32_t jetty = none;               // index of the Jetty; none if it has been destroyed
  Tassn next_tassn = Tassn::first(0);  // of the next slice that is cut
  uint32_t first_slice = Slice::none;  // oldest outstanding, tombstones included
  uint32_t last_slice = Slice::none;   // newest outstanding
  LightRun light;                      // works, whose TASSNs are the newest
  uint32_t offered_cost = 0;  // cost of the slices of which the channel has not pulled all packets
  uint32_t works = 0;         // so far
  uint32_t carried = 0;       // slices that a device carries (CarriedSlices)
  // When an answer last ended a work, and the number of that work: progress of all later works.
  Time last_answer{};
  uint32_t last_answered = 0;
  uint32_t checked = 0;  // the round in which the deadline of its oldest work was checked
  uint16_t first_to_cut = Queues::none;  // works in line to be cut
  uint16_t last_to_cut = Queues::none;
  uint32_t next_of_peer = none;   // the peer's list of flows
  uint32_t next_of_jetty = none;  // the Jetty's list of flows
  uint8_t offering = 0;     // its weight while slices of it are in the channel's queue; else 0
  bool urgent = false;      // the slices of it in the channel's queue are urgent
  bool peer_over = false;   // it is kept only until its last slice has settled
  bool to_reoffer = false;  // some slice is waiting_to_offer
  Sequence sequence = Sequence::none;
  uint32_t atomics = 0;                 // how many atomics with results it has had
  uint32_t first_atomic = Slice::none;  // the oldest of these that is undecided
  PreparedSegment used;                 // Copier: the mapped segment that it used last
};

}  // namespace urma::jetty
