// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "transport/upper.h"
#include "wire/ta_chain.h"

namespace urma::jetty {

// Returns whether the packet can belong to a slice (UB 4.3): a packet other than the last is full,
// the last one holds the rest, and the slice is not too long. `packet_bytes`: the payload of a full
// packet of this channel.
bool is_well_formed(const transport::Received& packet, const ParsedRequest& request,
                    uint32_t packet_bytes);

// Returns the address at which a slice of several packets begins in memory, if `packet`, the first
// one to arrive, shows that: the last packet does, and one before which no packet is missing.
std::optional<uint64_t> start_in_memory(const transport::Received& packet,
                                        const ParsedRequest& request);

}  // namespace urma::jetty
