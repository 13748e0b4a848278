// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "drivers/port_facts.h"
#include "urma/core/retransmission.h"

namespace urma::engine {

// Returns the default mode for a medium.
Retransmission retransmission_for(const drivers::PortFacts& port);
// Returns why a mode is invalid or cannot be used on this medium, with a fix. The result is empty
// if it can be used.
std::string objection(const Retransmission& mode, const drivers::PortFacts& port);
// Returns a disadvantage of the mode on this medium, for the application that chose it. The result
// is empty if there is none worth reporting.
std::string warning(const Retransmission& mode, const drivers::PortFacts& port);

}  // namespace urma::engine
