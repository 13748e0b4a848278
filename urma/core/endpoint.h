// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "urma/core/export.h"
#include "urma/core/ids.h"
#include "urma/core/result.h"

namespace urma {

inline constexpr uint16_t ub_port = 4792;  // UDP destination port of UB (UB 1)

// The address of a device: an IP address and a UDP port, or a slot of a window. An IPv4 address is
// stored as ::ffff:a.b.c.d, so that one type holds both kinds and each address is an EID.
struct Endpoint {
  // The first 12 bytes of an IPv4 address that is stored as an IPv6 one.
  static constexpr unsigned char mapped_prefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

  Eid address;        // the IP address, or that of a window's slot or of a switched device
  uint16_t port = 0;  // of UDP; 0 in a window

  // Returns whether the address is an IPv4 address.
  bool is_ipv4() const { return std::memcmp(address.bytes.data(), mapped_prefix, 12) == 0; }
  friend bool operator==(const Endpoint&, const Endpoint&) = default;
};

// An address in a window of shared memory consists of this prefix, the window's 64-bit number and
// the slot. The prefix is from fd00::/8, the range of locally assigned addresses, so no network
// routes it.
inline constexpr unsigned char window_prefix[5] = {0xfd, 0x75, 0x72, 0x6d, 0x61};
// Returns whether the address is in a window.
constexpr bool in_window(const Eid& address) {
  for (unsigned i = 0; i < sizeof window_prefix; ++i) {
    if (address.bytes[i] != std::byte{window_prefix[i]}) return false;
  }
  return true;
}

// The address of a device behind a UB switch (link(SWITCH):DEVICE) consists of this prefix, zeros
// and its CNA of 24 bits: fd55:4200::7. The prefix is from fd00::/8 as well.
inline constexpr unsigned char switched_prefix[4] = {0xfd, 0x55, 0x42, 0x00};
inline constexpr uint32_t most_cna = (1 << 24) - 1;
// Returns whether the address is that of a device behind a switch.
constexpr bool is_switched(const Eid& address) {
  constexpr unsigned cna_at = 13;
  for (unsigned i = 0; i < cna_at; ++i) {
    const unsigned char expected = i < sizeof switched_prefix ? switched_prefix[i] : 0;
    if (address.bytes[i] != std::byte{expected}) return false;
  }
  return true;
}
// Returns the CNA in an address, which must be that of a device behind a switch.
constexpr uint32_t cna_of(const Eid& address) {
  uint32_t cna = 0;
  for (unsigned i = 13; i < 16; ++i) cna = cna << 8 | static_cast<uint32_t>(address.bytes[i]);
  return cna;
}
// Returns the address of the device with this CNA, at most most_cna.
constexpr Eid cna_address(uint32_t cna) {
  Eid address;
  for (unsigned i = 0; i < sizeof switched_prefix; ++i) {
    address.bytes[i] = std::byte{switched_prefix[i]};
  }
  for (unsigned i = 0; i < 3; ++i) address.bytes[15 - i] = static_cast<std::byte>(cna >> 8 * i);
  return address;
}

// Returns whether a device at `from` can reach `to`: both are IPv4, both IPv6, both in one window,
// or both behind switches.
bool may_reach(const Eid& from, const Eid& to);

// Returns the IPv4 address a.b.c.d as an Eid.
URMA_API Eid ipv4(uint8_t a, uint8_t b, uint8_t c, uint8_t d);

// Returns the address as text: "127.0.0.1", "::1". `parse_address` of the text returns the same
// address.
URMA_API std::string to_string(const Eid& address);
// Returns the address with its port as text: "127.0.0.1:4792", "[::1]:4792".
URMA_API std::string to_string(const Endpoint& endpoint);

// Parses a numeric IPv4 or IPv6 address; does not resolve host names. Errors: invalid_argument.
URMA_API Result<Eid> parse_address(std::string_view text);
// Parses an address with or without a port: "127.0.0.1", "[::1]:4000", "::1". Without a port, the
// result has `ub_port`. Errors: invalid_argument.
URMA_API Result<Endpoint> parse_endpoint(std::string_view text);

}  // namespace urma
