// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "urma/core/handle.h"
#include "urma/core/sequence.h"

namespace urma {

// The 128-bit entity identifier of a device (UB 1): an IPv6 address, or an IPv4 address mapped into
// IPv6.
struct Eid {
  std::array<std::byte, 16> bytes{};  // in network order

  friend bool operator==(const Eid& a, const Eid& b) {
    return std::memcmp(a.bytes.data(), b.bytes.data(), 16) == 0;
  }
  friend auto operator<=>(const Eid& a, const Eid& b) {
    return std::memcmp(a.bytes.data(), b.bytes.data(), 16) <=> 0;
  }
};

// The numbers of a Jetty and of a segment on its device: 20 bits each on the wire.
enum class JettyId : uint32_t {};
enum class TokenId : uint32_t {};
// The bits of such a number, and the first number that has more.
inline constexpr uint32_t id_bits = 20;
inline constexpr uint32_t id_limit = 1 << id_bits;
// This bit of a JettyId says that it is the number of a Jetty group (UB 5.3: TGT_TC_Type 2).
inline constexpr uint32_t group_bit = 2 << id_bits;
constexpr bool is_group(JettyId id) { return (static_cast<uint32_t>(id) & group_bit) != 0; }
// Returns the number without that bit.
constexpr JettyId without_group_bit(JettyId id) {
  return JettyId(static_cast<uint32_t>(id) & ~group_bit);
}

// A secret of 32 bits that a request must contain to be accepted. The owner draws it from a secure
// generator.
enum class TokenValue : uint32_t {};

// Identifies one opening of a device at an EID: a process that restarts has another incarnation.
// Zero matches any incarnation, for descriptors that are written by hand.
enum class Incarnation : uint64_t {};

// Identifies a peer of this device: one incarnation of another device. After a restart the other
// device has a new PeerId.
using PeerId = Handle;

// Transport channel number (UB: TPN), 24 bits.
enum class Tpn : uint32_t {};
inline constexpr uint32_t tpn_limit = 1 << 24;

// Numbers that wrap on the wire.
using Psn = Sequence<struct PsnSpace, 24>;      // packets of a channel: UB 4.3.1, UB 4.3.3
using Tpmsn = Sequence<struct TpmsnSpace, 24>;  // slices of a channel
using Tassn = Sequence<struct TassnSpace, 16>;  // slices of an initiator queue towards one peer

// Well-known Jetties (UB 6.1, docs/protocol.md).
inline constexpr JettyId setup_jetty{0};
inline constexpr JettyId names_jetty{1};
// The lowest number that an application may choose (JettyOptions::id), and the lowest one that a
// device draws.
inline constexpr JettyId first_user_jetty{2};
inline constexpr JettyId first_dynamic_jetty{1024};

// Returns an id as an integer.
template <class Id>
requires std::is_enum_v<Id>
constexpr auto number(Id id) { return static_cast<std::underlying_type_t<Id>>(id); }

}  // namespace urma
