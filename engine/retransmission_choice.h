#pragma once

#include <string>

#include "drivers/driver.h"
#include "urma/core/retransmission.h"

namespace urma::engine {

// What suits a medium.
Retransmission retransmission_for(const drivers::PortFacts& port);
// Why a mode cannot be used, or not on this medium, and what can; empty: it can.
std::string objection(const Retransmission& mode, const drivers::PortFacts& port);
// What whoever chose it should know; empty: nothing.
std::string warning(const Retransmission& mode, const drivers::PortFacts& port);

}  // namespace urma::engine
