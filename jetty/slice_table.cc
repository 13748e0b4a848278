#include "jetty/slice_table.h"

namespace urma::jetty {
namespace {

using S = SliceState;
using E = SliceEvent;

constexpr SliceStep stay(S state) { return {.state = state}; }

// The status is decided; the work may be told as soon as no driver reads its memory.
constexpr SliceStep decide(Status status, bool in_device, bool tombstone = false) {
  return {.state = in_device ? S::settling : S::done,
          .decided = true,
          .status = status,
          .tombstone = tombstone};
}

constexpr SliceStep act(S state, SliceAction action) { return {.state = state, .action = action}; }

}  // namespace

SliceStep step(S state, E event, bool in_device) {
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

bool claims_not_executed(Status status) {
  return status == Status::flushed || status == Status::peer_unreachable ||
         status == Status::peer_restarted || status == Status::receiver_not_ready ||
         status == Status::no_resources;
}

}  // namespace urma::jetty
