// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace urma::congestion {

// Packets name increases of a window in units of so many bytes.
inline constexpr unsigned hint_unit = 32;

// How the port meters of switches read the hints of packets. The numbers are those of `attached`
// messages (docs/protocol.md, section 17).
enum class Metering : uint8_t {
  unknown = 0,
  none = 1,       // no meter: packets pass as they are
  increases = 2,  // as caqm_w sends them
  rates = 3,      // as caqm_r sends them
  other = 255,    // in another way, or some as increases and some as rates
};

// Returns whether a packet with hints of the kind `asked`, which is `increases` or `rates`, may
// pass these ports: no meter takes its hints for the other kind, as far as is known.
constexpr bool may_pass(Metering asked, Metering ports) {
  return ports == asked || ports == Metering::none || ports == Metering::unknown;
}

// Returns how ports of both kinds together read hints.
constexpr Metering together(Metering a, Metering b) {
  if (a == b || b == Metering::none) return a;
  if (a == Metering::none || a == Metering::unknown) return b;
  return b == Metering::unknown ? a : Metering::other;
}

// The part of a data packet that is about congestion. Its sender asks, each switch on the way
// edits, and its receiver reports what arrived. These are the fields of NTH.CCI in mode C-AQM
// (UB 6.6.1.3) and two of liburma's own in reserved bits; their layout is in `wire`, and not known
// here. A packet that takes no part in congestion control has the default values.
struct Signal {
  bool congested = false;  // C: a switch is overloaded
  bool increase = false;   // I: the sender asks to send more; a switch that refuses clears it
  bool last_hop = false;   // Loc: the switch that set C is the receiver's
  bool switched = false;   // S: at least one switch with a port meter forwarded the packet
  // caqm_w: the increase of the window that the sender asks for, in hint units. caqm_r: a rate
  // code, of the sender's rate or, with C, of the rate that a switch allows. Zero asks for
  // nothing.
  uint8_t hint = 0;
  // UBQ: a queue code (arithmetic.h) of the time that the packet waited in switches with a port
  // meter. If a round trip takes longer than its least time and this together, a queue stands at a
  // hop that no port meter measures.
  uint8_t switch_queue = 0;

  bool operator==(const Signal&) const = default;
};

}  // namespace urma::congestion
