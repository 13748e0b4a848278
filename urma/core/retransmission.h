// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "urma/core/export.h"
#include "urma/core/time.h"

namespace urma {

// How a channel detects lost packets and retransmits them, on a medium that loses packets
// (UB 6.4.2). Any consistent combination of the fields is valid. Five combinations with names are
// below; docs/performance.md says which of these to choose.
struct Retransmission {
  // The packets that are retransmitted: only the missing ones, or all from the first missing one
  // on.
  enum class Scope : uint8_t { selective, go_back_n };
  // When a packet counts as lost, besides after a time-out without any acknowledgement.
  enum class Trigger : uint8_t {
    rack,     // when a packet sent later has arrived; if nothing arrives, a probe is sent
    fast,     // as soon as the peer reports it missing
    timeout,  // after a time-out only
  };
  // The length of the retransmission time-out.
  enum class Rto : uint8_t {
    measured,  // computed from round trips; doubled for each time-out in a row; 1 to 200 ms
    fixed,     // rto_base
    doubled,   // rto_base * 2^(rto_exponent * time-outs in a row), at most 200 ms
  };

  // Returns whether the enumeration has this value, since any number can be cast to one.
  friend constexpr bool is_valid(Scope value) { return value <= Scope::go_back_n; }
  friend constexpr bool is_valid(Trigger value) { return value <= Trigger::timeout; }
  friend constexpr bool is_valid(Rto value) { return value <= Rto::doubled; }

  // The members from here to `rto_base` say how this end sends. The peer learns them when the
  // channel is made, and receives accordingly.

  Scope scope = Scope::selective;   // the packets that are retransmitted
  Trigger trigger = Trigger::rack;  // when a packet counts as lost
  // Whether the peer keeps packets that arrive before a missing one. Otherwise it drops them, and
  // they must be sent again.
  bool keeps_out_of_order = true;
  // Trigger::rack: a packet that this many later packets have overtaken counts as lost, as long as
  // the channel has not seen that packets overtake one another on this medium. 0 disables this
  // rule, for a medium on which packets do overtake one another.
  uint32_t reorder_packets = 3;
  // The length of the retransmission time-out.
  Rto rto = Rto::measured;
  // Rto::doubled: the exponent of each doubling, 0 to 8.
  uint8_t rto_exponent = 1;
  // The channel is lost at the time-out that follows this many consecutive ones (UB 4.4.19); 0
  // disables this rule. In any case it is lost after 1 s without a packet from the peer while an
  // answer is outstanding.
  uint8_t rto_tries = 0;
  // Rto::fixed and doubled: the first time-out, 4 us to 200 ms.
  Duration rto_base{};

  // The members from here on say how this end receives.

  // The number of packets after a missing one that are accepted: 1 to 2048.
  uint32_t window_packets = 2048;
  // The number of bits in a TPSACK, each of which reports one packet: 64, 128, 256, 512 or 1024.
  uint32_t bitmap_bits = 1024;
  // An acknowledgement is sent after this many packets: 1 to 1024.
  uint32_t ack_packets = 16;
  // An acknowledgement is sent at the latest after this time: up to 10 ms. If zero, the time is
  // chosen from the measured round trips.
  Duration ack_delay{};

  friend bool operator==(const Retransmission&, const Retransmission&) = default;
};

// The four modes of UB 6.4.2, and sel_rack, which is this library's own and the default. All use
// the measured time-out, where UB leaves the choice.
inline constexpr Retransmission gbn_fast = {.scope = Retransmission::Scope::go_back_n,
                                            .trigger = Retransmission::Trigger::fast,
                                            .keeps_out_of_order = false};
inline constexpr Retransmission gbn_timeout = {.scope = Retransmission::Scope::go_back_n,
                                               .trigger = Retransmission::Trigger::timeout};
inline constexpr Retransmission sel_fast = {.trigger = Retransmission::Trigger::fast};
inline constexpr Retransmission sel_timeout = {.trigger = Retransmission::Trigger::timeout};
inline constexpr Retransmission sel_rack = {};

// A mode with its name, as the option `retransmit=` of device strings accepts it.
struct NamedRetransmission {
  std::string_view name;     // "gbn-fast"
  std::string_view summary;  // for people
  Retransmission mode;       // its fields
};
// A range over the five named modes; the first one is the default.
struct NamedRetransmissions {
  const NamedRetransmission* first;  // the first mode
  const NamedRetransmission* last;   // the end behind the last one
  // These let `for (const auto& mode : named_retransmissions())` compile.
  const NamedRetransmission* begin() const { return first; }
  const NamedRetransmission* end() const { return last; }
};
// Returns the five named modes. Any thread may call it.
URMA_API NamedRetransmissions named_retransmissions();
// Returns the mode with this name, or null if there is none. Any thread may call it.
URMA_API const NamedRetransmission* find_retransmission(std::string_view name);
// Returns the name of the mode with the same scope, trigger and keeps_out_of_order, or "custom" if
// there is none. Any thread may call it.
URMA_API std::string_view name(const Retransmission& mode);

}  // namespace urma
