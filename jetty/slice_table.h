#pragma once

#include <cstdint>

#include "urma/core/status.h"

namespace urma::jetty {

// Who may end a slice, and how. One pure function owns the answer; nothing else in the library ends
// a work that has a slice. It is exhausted in tests/exhaustive/slice_table_test.cc.

enum class SliceState : uint8_t {
  held,         // cut or not, no TASSN yet: nothing of it can have left
  offered,      // the channel has a reference and a TASSN is given, no packet written yet
  reoffered,    // likewise, but it left on an earlier channel and may have executed
  sending,      // at least one packet was written
  delivered,    // every packet is acknowledged; whether it executed is not known
  waiting,      // the target was not ready: it did not execute, and is offered again later
  stranded,     // its channel died before a packet was written
  parted,       // its channel died after that
  withdrawing,  // cancelled after a packet was written; an answer may still come
  settling,     // the status is decided; a driver may still read the memory
  done,
};

enum class SliceEvent : uint8_t {
  pulled,        // the channel had its first packet written
  delivered,     // the channel says: all acknowledged
  answered,      // the target executed or refused it
  not_ready,     // the target was not ready
  due,           // the wait after not_ready is over
  too_long,      // not ready for longer than allowed
  cancel,        // flush, deadline, local unregister
  overdue,       // the time that a withdrawal may take is over
  channel_died,  // the peer may come back
  channel_back,  // the same life of the peer has a channel again
  unreachable,   // no channel could be made in time
  peer_over,     // this life of the peer is over
  settled,       // no driver reads the memory any more
};

// What the caller must do besides noting the state.
enum class SliceAction : uint8_t {
  none,
  offer,        // to the peer's channel, as it is
  offer_again,  // likewise, as a retry: same TASSN, new packets
  wait,         // start the timer that brings `due`
};

struct SliceStep {
  SliceState state;
  // How the work ends as far as this slice goes; meaningful when `decided`. `answered` leaves the
  // status to the answer: `decided` is true and `status` ok.
  bool decided = false;
  Status status = Status::ok;
  SliceAction action = SliceAction::none;
  // The TASSN outlives the work: its packets may still arrive or their answer come, so it is kept
  // until that can be no more, and what is still unwritten of it leaves as filler.
  bool tombstone = false;

  friend bool operator==(const SliceStep&, const SliceStep&) = default;
};

// `in_device`: a driver may still read memory of this slice for a packet that was written again.
SliceStep step(SliceState state, SliceEvent event, bool in_device);

// Whether this end of a work says that it had no effect.
bool claims_not_executed(Status status);

}  // namespace urma::jetty
