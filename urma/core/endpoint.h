#pragma once

#include <string>
#include <string_view>

#include "urma/core/export.h"
#include "urma/core/ids.h"
#include "urma/core/result.h"

namespace urma {

inline constexpr uint16_t ub_port = 4792;  // UDP destination port of UB (UB 1)

// An IP address and a UDP port; IPv4 as ::ffff:a.b.c.d, so that one type serves both and an
// address is an EID.
struct Endpoint {
  static constexpr unsigned char mapped_prefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

  Eid address;
  uint16_t port = 0;

  bool is_ipv4() const { return std::memcmp(address.bytes.data(), mapped_prefix, 12) == 0; }
  friend bool operator==(const Endpoint&, const Endpoint&) = default;
};

// Addresses in windows of shared memory: a prefix that no network has (fd00::/8 is for whoever
// draws it), the window's number, the place.
inline constexpr unsigned char window_prefix[5] = {0xfd, 0x75, 0x72, 0x6d, 0x61};
constexpr bool in_window(const Eid& address) {
  for (unsigned i = 0; i < sizeof window_prefix; ++i) {
    if (address.bytes[i] != std::byte{window_prefix[i]}) return false;
  }
  return true;
}
// Whether a device at the one address can reach the other: both IPv4, both IPv6, or in one window.
bool may_reach(const Eid& from, const Eid& to);

URMA_API Eid ipv4(uint8_t a, uint8_t b, uint8_t c, uint8_t d);

// "127.0.0.1", "::1". What `parse_address` gives back unchanged.
URMA_API std::string to_string(const Eid& address);
// "127.0.0.1:4792", "[::1]:4792".
URMA_API std::string to_string(const Endpoint& endpoint);

// A numeric address; host names are not looked up here.
URMA_API Result<Eid> parse_address(std::string_view text);
// An address, with or without a port (then `ub_port`): "127.0.0.1", "[::1]:4000", "::1".
URMA_API Result<Endpoint> parse_endpoint(std::string_view text);

}  // namespace urma
