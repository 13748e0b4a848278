// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "urma/core/descriptor.h"

namespace urma::engine {

// Where the engines of a device are, which follows from its descriptor (docs/protocol.md, section
// 12). Any thread calls these.

// Returns the EID of an engine. `first`: the EID of the first engine. `place`: where the engine is
// reached.
Eid eid_of_engine(const Eid& first, uint32_t engine, const Endpoint& place);
// Returns the addresses of all engines, in order.
std::vector<Endpoint> places_of(const Descriptor& device);
// Returns the number of the engine to which the Jetty belongs, on a device with so many.
inline uint32_t engine_of(JettyId jetty, uint32_t engines) {
  return number(jetty) % id_limit % engines;
}
// Returns where the Jetty of the descriptor is, which has one.
Endpoint place_of_jetty(const Descriptor& device);

}  // namespace urma::engine
