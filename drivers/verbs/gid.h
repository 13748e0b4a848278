// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "drivers/verbs/settings.h"

namespace urma::drivers::verbs {

// One entry of a port's table of GIDs. A GID is an IPv6 address, or an IPv4 address mapped as in
// Endpoint.
struct Gid {
  // How packets from this GID look: with the header of InfiniBand, directly in Ethernet (RoCE v1),
  // or in IP and UDP (RoCE v2).
  enum class Kind : uint8_t { infiniband, roce1, roce2 };

  Eid address{};
  uint32_t index = 0;
  uint32_t interface = 0;  // the index of its network interface; 0: none
  Kind kind = Kind::roce2;
};
std::string_view name(Gid::Kind kind);

// Chooses the GID of a device out of those of its port. Without a wish that is one whose packets
// routers forward: an IPv4 address, then an IPv6 address that is valid everywhere, then one of the
// link. `place` names the port in messages. Errors: unsupported (the port has no GID of a kind that
// this driver uses), invalid_argument (the wish).
Result<Gid> choose_gid(std::span<const Gid> table, const GidWish& wish, std::string_view place);

// The Global Routing Header in front of each datagram in its receive buffer.
inline constexpr size_t grh_bytes = 40;
// Returns the sender's GID. The header is that of InfiniBand or IPv6, or it has an IPv4 header in
// its last 20 bytes, and undefined ones before them.
Eid sender_of(std::span<const std::byte, grh_bytes> header);

}  // namespace urma::drivers::verbs
