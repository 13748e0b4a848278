// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "transport/channel.h"
#include "urma/core/status.h"

namespace urma::jetty {

// Returns the status of a work that has no channel for the reason `why`. When a channel has ended,
// it is not known whether the peer executed the work, so the caller changes the status to `unknown`
// if any part of the work was sent.
constexpr Status status_of(transport::Why why) {
  using transport::Why;
  switch (why) {
    case Why::refused:
      return Status::version_mismatch;
    case Why::no_room:
      return Status::no_resources;
    case Why::unreachable:
      return Status::peer_unreachable;
    case Why::silent:
    case Why::restarted:
    case Why::left:
    case Why::idle:
      return Status::timed_out;
  }
  return Status::timed_out;
}

// Returns whether this incarnation of the peer is over, so that no channel to it will be made
// again.
constexpr bool ends_incarnation(transport::Why why) {
  return why == transport::Why::restarted || why == transport::Why::left;
}

}  // namespace urma::jetty
