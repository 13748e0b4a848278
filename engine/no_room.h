#pragma once

#include <string>

#include "drivers/driver.h"
#include "urma/core/result.h"

namespace urma::engine {

// The port's part in a failure to reach a peer for lack of room. It points into the port's facts.
struct NoRoom {
  Ways::Shortage shortage = Ways::Shortage::none;
  const drivers::PortFacts::Backing* backing = nullptr;
};

// Explains that no channel could be made to `peer`, such as "the process at ADDRESS". If the medium
// is not short of anything, the peer has refused. Asks the system, so it is not for a pass.
Error explain_no_room(const std::string& peer, const NoRoom& why);

}  // namespace urma::engine
