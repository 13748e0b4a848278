#pragma once

#include <cstdint>
#include <string_view>

#include "urma/core/export.h"
#include "urma/core/time.h"

namespace urma {

// How a channel finds packets that were lost and sends them again, over a medium that loses some.
// Data: any combination that makes sense may be asked for; those with names are below, and
// docs/retransmission.md says which to choose.
struct Retransmission {
  // What is sent again: what is missing, or everything from the first missing packet on.
  enum class Scope : uint8_t { selective, go_back_n };
  // What shows that a packet is lost, besides silence for a time-out, which always does.
  enum class Trigger : uint8_t {
    rack,     // one that was sent later has come; a probe asks when nothing comes any more
    fast,     // the peer says at once what is missing, and is believed at once
    timeout,  // nothing
  };
  enum class Rto : uint8_t {
    measured,  // from the round trips, twice as long each time in a row; 1 to 200 ms
    fixed,     // rto_base, always
    doubled,   // rto_base * 2^(rto_exponent * times in a row), to 200 ms
  };

  friend constexpr bool is_valid(Scope value) { return value <= Scope::go_back_n; }
  friend constexpr bool is_valid(Trigger value) { return value <= Trigger::timeout; }
  friend constexpr bool is_valid(Rto value) { return value <= Rto::doubled; }

  // Of what this end sends. Its peer is told when the channel is made, and receives accordingly.
  Scope scope = Scope::selective;
  Trigger trigger = Trigger::rack;
  bool keeps_out_of_order = true;  // the peer, what comes before something that is missing
  // rack: as long as no packet was seen to overtake another one, one that so many later packets
  // have overtaken is lost, too. 0: numbers say nothing, for packets overtake one another as a
  // rule.
  uint32_t reorder_packets = 3;
  Rto rto = Rto::measured;
  uint8_t rto_exponent = 1;  // 0 to 8
  uint8_t rto_tries = 0;     // time-outs in a row that end the channel; 0: 1 s of silence does
  Duration rto_base{};       // of a fixed or doubled one: 4 us to 200 ms

  // Of what this end receives.
  uint32_t window_packets = 2048;  // how far ahead of a missing one they are taken; 1 to 2048
  uint32_t bitmap_bits = 1024;     // what a TPSACK tells of them: 64, 128, 256, 512 or 1024
  uint32_t ack_packets = 16;       // so many are acknowledged together; 1: each at once; to 1024
  Duration ack_delay{};            // or after so long, to 10 ms; 0: what suits the round trips

  friend bool operator==(const Retransmission&, const Retransmission&) = default;
};

// The four modes of UB (6.4.2), and one of ours. Of each time-out the measured one is used, unless
// you say otherwise.
inline constexpr Retransmission gbn_fast = {.scope = Retransmission::Scope::go_back_n,
                                            .trigger = Retransmission::Trigger::fast,
                                            .keeps_out_of_order = false};
inline constexpr Retransmission gbn_timeout = {.scope = Retransmission::Scope::go_back_n,
                                               .trigger = Retransmission::Trigger::timeout};
inline constexpr Retransmission sel_fast = {.trigger = Retransmission::Trigger::fast};
inline constexpr Retransmission sel_timeout = {.trigger = Retransmission::Trigger::timeout};
inline constexpr Retransmission sel_rack = {};

struct NamedRetransmission {
  std::string_view name;  // "gbn-fast"
  std::string_view summary;
  Retransmission mode;
};
// All five; the default is the first one.
struct NamedRetransmissions {
  const NamedRetransmission* first;
  const NamedRetransmission* last;
  const NamedRetransmission* begin() const { return first; }
  const NamedRetransmission* end() const { return last; }
};
URMA_API NamedRetransmissions named_retransmissions();
// Null when none has that name.
URMA_API const NamedRetransmission* find_retransmission(std::string_view name);
// Of the named one with the same scope, trigger and receiver; "custom" if there is none.
URMA_API std::string_view name(const Retransmission& mode);

}  // namespace urma
