#pragma once

#include <cstdint>
#include <span>

#include "urma/core/frame.h"

namespace urma::transport {

// ICRC of a UB packet on IP and UDP (UB 3.3): over the headers below, as a socket sends them and
// with what the network may change set to ones, then everything from the transport header to the
// padding. It is made per UB packet, so that segmentation offload does not matter.

inline constexpr size_t icrc_bytes = 4;

// The part that the addresses and the length decide. `ub_bytes`: from the transport header to the
// ICRC, both included.
uint32_t icrc_begin(const Endpoint& from, const Endpoint& to, size_t ub_bytes);

// Writes the ICRC of a frame whose head, pieces and padding are in place behind its padding.
void seal(TxFrame& frame, const Endpoint& from);

// Whether the last four bytes of `packet` are its ICRC.
bool verify(std::span<const std::byte> packet, const Endpoint& from, const Endpoint& to);

}  // namespace urma::transport
