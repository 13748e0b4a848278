// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "drivers/packet_port.h"
#include "urma/core/result.h"

namespace urma::engine {

// The shortage of a port's medium, which may be the reason why a peer cannot be reached. `backing`
// points into the port's facts.
struct NoRoom {
  Ways::Shortage shortage = Ways::Shortage::none;
  const drivers::PortFacts::Backing* backing = nullptr;
};

// Explains that no channel could be made to `peer`, such as "the process at ADDRESS". If the medium
// is not short of anything, the peer has refused. Makes system calls, so it must not be called in a
// pass.
Error explain_no_room(const std::string& peer, const NoRoom& why);

}  // namespace urma::engine
