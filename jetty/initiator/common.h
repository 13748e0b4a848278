// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "jetty/initiator/counters.h"
#include "jetty/jetty.h"
#include "jetty/peers.h"
#include "jetty/staging.h"
#include "transport/channel.h"

namespace urma::jetty {

// The objects around the initiator that several of its parts use. None of the parts owns any of
// them, and all of them outlive the parts.
struct InitiatorCommon {
  Jetties& jetties;
  PeerStates& peers;
  transport::Channels& channels;
  InitiatorCounters& counters;
  Staging& staging;
};

}  // namespace urma::jetty
