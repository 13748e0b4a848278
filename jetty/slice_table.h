#pragma once

#include <cstdint>

#include "urma/core/status.h"

namespace urma::jetty {

// Who may end a slice, and how. One pure function owns the answer; nothing else in the library says
// how a work ends that has a slice. It is exhausted in tests/exhaustive/slice_table_test.cc.

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

namespace detail {

constexpr SliceStep stay(SliceState state) { return {.state = state}; }

// The status is decided; the work may be told as soon as no driver reads its memory.
constexpr SliceStep decide(Status status, bool in_device, bool tombstone = false) {
  return {.state = in_device ? SliceState::settling : SliceState::done,
          .decided = true,
          .status = status,
          .tombstone = tombstone};
}

constexpr SliceStep act(SliceState state, SliceAction action) {
  return {.state = state, .action = action};
}

}  // namespace detail

// `in_device`: a driver may still read memory for packets of this slice.
constexpr SliceStep step(SliceState state, SliceEvent event, bool in_device) {
  using S = SliceState;
  using E = SliceEvent;
  using detail::act;
  using detail::decide;
  using detail::stay;
  switch (state) {
    case S::held:
      switch (event) {
        case E::cancel:
        case E::overdue:
          return decide(Status::flushed, false);
        case E::unreachable:
          return decide(Status::peer_unreachable, false);
        case E::peer_over:
          return decide(Status::peer_restarted, false);
        default:
          return stay(state);
      }

    case S::offered:
      switch (event) {
        case E::pulled:
          return stay(S::sending);
        // The TASSN is taken, so its place leaves as filler; of the work itself nothing ever
        // leaves.
        case E::cancel:
        case E::overdue:
          return decide(Status::flushed, false, true);
        case E::channel_died:
          return stay(S::stranded);
        case E::unreachable:
          return decide(Status::peer_unreachable, false);
        case E::peer_over:
          return decide(Status::peer_restarted, false);
        default:
          return stay(state);
      }

    case S::reoffered:
      switch (event) {
        case E::pulled:
          return stay(S::sending);
        case E::cancel:
        case E::overdue:
          return decide(Status::unknown, in_device, true);
        case E::channel_died:
          return stay(S::parted);
        case E::unreachable:
        case E::peer_over:
          return decide(Status::unknown, in_device);
        default:
          return stay(state);
      }

    case S::sending:
      switch (event) {
        case E::delivered:
          return stay(S::delivered);
        // An answer proves that every packet arrived, so it may come before the acknowledgement.
        case E::answered:
          return decide(Status::ok, in_device);
        case E::not_ready:
          return act(S::waiting, SliceAction::wait);
        case E::cancel:
          return stay(S::withdrawing);
        case E::overdue:
          return decide(Status::unknown, in_device, true);
        case E::channel_died:
          return stay(S::parted);
        case E::unreachable:
        case E::peer_over:
          return decide(Status::unknown, in_device);
        default:
          return stay(state);
      }

    case S::delivered:
      switch (event) {
        case E::answered:
          return decide(Status::ok, in_device);
        case E::not_ready:
          return act(S::waiting, SliceAction::wait);
        // Nothing is left to withdraw; whether it executes is out of our hands.
        case E::cancel:
        case E::overdue:
          return decide(Status::unknown, in_device, true);
        case E::channel_died:
          return stay(S::parted);
        case E::unreachable:
        case E::peer_over:
          return decide(Status::unknown, in_device);
        default:
          return stay(state);
      }

    case S::waiting:
      switch (event) {
        case E::due:
          return act(S::offered, SliceAction::offer_again);
        // The target said itself that it did not execute, and no packet is under way.
        case E::too_long:
        case E::cancel:
        case E::overdue:
          return decide(Status::receiver_not_ready, in_device, true);
        case E::channel_died:
          return stay(S::parted);
        case E::unreachable:
        case E::peer_over:
          return decide(Status::unknown, in_device);
        default:
          return stay(state);
      }

    case S::stranded:
      switch (event) {
        case E::channel_back:
          return act(S::offered, SliceAction::offer);
        case E::cancel:
        case E::overdue:
          return decide(Status::flushed, false);
        case E::unreachable:
          return decide(Status::peer_unreachable, false);
        case E::peer_over:
          return decide(Status::peer_restarted, false);
        default:
          return stay(state);
      }

    case S::parted:
      switch (event) {
        case E::channel_back:
          return act(S::reoffered, SliceAction::offer_again);
        case E::cancel:
        case E::overdue:
        case E::unreachable:
        case E::peer_over:
          return decide(Status::unknown, in_device);
        default:
          return stay(state);
      }

    case S::withdrawing:
      switch (event) {
        case E::answered:
          return decide(Status::ok, in_device);
        case E::not_ready:
          return decide(Status::receiver_not_ready, in_device, true);
        // All its packets, filler or not, were acknowledged: that proves nothing about execution.
        case E::delivered:
        case E::overdue:
          return decide(Status::unknown, in_device, true);
        case E::channel_died:
        case E::unreachable:
        case E::peer_over:
          return decide(Status::unknown, in_device);
        default:
          return stay(state);
      }

    case S::settling:
      return event == E::settled ? stay(S::done) : stay(state);

    case S::done:
      return stay(state);
  }
  return stay(state);
}

// Whether this end of a work says that it had no effect.
constexpr bool claims_not_executed(Status status) {
  return status == Status::flushed || status == Status::peer_unreachable ||
         status == Status::peer_restarted || status == Status::receiver_not_ready ||
         status == Status::no_resources;
}

}  // namespace urma::jetty
