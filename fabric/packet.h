// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "congestion/signal.h"
#include "wire/frame.h"

namespace urma::fabric {

// Addresses are CNAs of 24 bits.
inline constexpr uint32_t most_addresses = 1 << 24;
inline constexpr uint32_t most_lanes = 16;

// The description of a packet: all that a switch reads or edits. The packet itself stays with the
// caller, which finds it by `handle`.
struct Packet {
  uint32_t source = 0;       // a CNA
  uint32_t destination = 0;  // a CNA
  uint32_t bytes = 0;        // on the line, with all headers
  uint8_t lane = 0;          // VL
  uint8_t lbf = 0;           // packets of one flow have the same one, and so take the same path
  uint8_t hops = 0;          // the switches that have forwarded it
  bool per_packet = false;   // RT bit 0: each packet may take another path
  congestion::Signal signal = {};
  Ecn ecn = Ecn::not_ect;
  uint64_t handle = 0;  // for the caller

  bool operator==(const Packet&) const = default;
};
static_assert(sizeof(Packet) <= 32);

}  // namespace urma::fabric
