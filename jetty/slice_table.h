// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "urma/core/status.h"

namespace urma::jetty {

// The states of a slice, and how each event changes them. The pure function `step` is the only code
// that decides how a work with slices ends. tests/exhaustive/slice_table_test.cc checks all its
// cases.

enum class SliceState : uint8_t {
  held,         // no TASSN given yet: no packet of it can have been sent
  offered,      // the channel has a reference and a TASSN is given, but no packet is written yet
  reoffered,    // as offered, but it was sent on an earlier channel and may have executed
  sending,      // at least one packet has been written
  delivered,    // every packet is acknowledged; it is unknown whether it has executed
  waiting,      // the target was not ready: it did not execute, and will be offered again
  stranded,     // its channel ended before a packet was written
  parted,       // its channel ended after a packet was written
  withdrawing,  // cancelled after a packet was written; an answer may still come
  settling,     // the status is decided; a driver may still read the memory
  done,
};

enum class SliceEvent : uint8_t {
  pulled,        // the channel asked for its first packet
  delivered,     // all its packets have been acknowledged
  answered,      // the target executed or refused it
  not_ready,     // the target was not ready
  due,           // the wait after not_ready is over
  too_long,      // not ready for longer than allowed
  cancel,        // flush, deadline, local unregister
  overdue,       // a cancelled slice has waited for its answer as long as it may
  channel_died,  // the peer may come back
  channel_back,  // the same incarnation of the peer has a channel again
  unreachable,   // no channel could be made in time
  peer_over,     // this incarnation of the peer is over
  settled,       // no driver reads the memory any more
};

// The action that the caller must take besides storing the state.
enum class SliceAction : uint8_t {
  none,
  offer,        // to the peer's channel, as it is
  offer_again,  // the same, as a retry: same TASSN, new packets
  wait,         // start the timer that brings `due`
};

// The effect of an event on a slice.
struct SliceStep {
  SliceState state;
  // Whether the slice's status is decided. If so, it is `status`, except that for the event
  // `answered` the status is that of the answer, and `status` is ok.
  bool decided = false;
  Status status = Status::ok;
  SliceAction action = SliceAction::none;
  // The TASSN must be kept after the work has ended (a tombstone), because its packets may still
  // arrive or be answered. It is kept until neither is possible; packets of the slice that are
  // still unwritten are sent as filler.
  bool tombstone = false;

  friend bool operator==(const SliceStep&, const SliceStep&) = default;
};

namespace detail {

constexpr SliceStep stay(SliceState state) { return {.state = state}; }

// The status is decided; the work may complete once no driver reads its memory.
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
        // The TASSN has been given, so filler is sent for it; no data of the work itself is ever
        // sent.
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
        // All packets have arrived, so the slice cannot be withdrawn: the target alone decides
        // whether it executes.
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
        // The target has answered that it did not execute, and no packet is on its way.
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
        // All packets of the slice, filler or not, were acknowledged; that proves nothing about
        // execution.
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

// Returns whether this status means that the work had no effect.
constexpr bool claims_not_executed(Status status) {
  return status == Status::flushed || status == Status::peer_unreachable ||
         status == Status::peer_restarted || status == Status::receiver_not_ready ||
         status == Status::no_resources;
}

}  // namespace urma::jetty
