// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "urma/core/result.h"

namespace urma::drivers::dpdk {

// Pairs of ports of net_ring: what one sends, the other receives. DPDK makes only rings whose
// packets return to their sender from arguments, so these functions make the rings. Any thread may
// call them.

// Returns DPDK's number of a free end of the pair with this name. Errors: address_in_use,
// no_resources.
Result<uint16_t> open_ring_end(const std::string& pair);
// Frees the packets that the other end has not received.
void drain_ring_end(const std::string& pair, uint16_t port);
// The port of this end has been closed.
void close_ring_end(const std::string& pair, uint16_t port);

}  // namespace urma::drivers::dpdk
