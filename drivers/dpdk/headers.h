// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/bits.h"
#include "drivers/dpdk/internet_sum.h"
#include "urma/core/endpoint.h"
#include "wire/frame.h"

namespace urma::drivers::dpdk {

// The headers around packets on Ethernet: Ethernet, VLAN, IPv4 or IPv6, and UDP. Bytes in, bytes
// out.

using Mac = std::array<std::byte, 6>;
// A comparison without the loop over bytes that == makes of arrays.
inline bool is_at(const std::byte* at, const Mac& mac) {
  return std::memcmp(at, mac.data(), 6) == 0;
}
// The same for IP addresses, for which compilers may call memcmp.
inline bool is_same(const Eid& a, const Eid& b) {
  return load_be<8>(a.bytes.data()) == load_be<8>(b.bytes.data()) &&
         load_be<8>(a.bytes.data() + 8) == load_be<8>(b.bytes.data() + 8);
}
inline constexpr Mac broadcast_mac = {std::byte{0xff}, std::byte{0xff}, std::byte{0xff},
                                      std::byte{0xff}, std::byte{0xff}, std::byte{0xff}};

enum class EtherType : uint16_t { ipv4 = 0x0800, arp = 0x0806, vlan = 0x8100, ipv6 = 0x86dd };
enum class IpProtocol : uint8_t { icmp = 1, udp = 17, icmpv6 = 58 };

inline constexpr size_t ethernet_bytes = 14;
inline constexpr size_t vlan_tag_bytes = 4;
inline constexpr size_t ipv4_bytes = 20;
inline constexpr size_t ipv6_bytes = 40;
inline constexpr size_t udp_bytes = 8;
inline constexpr size_t mapped_bytes = 12;  // of an IPv4 address as an Eid, in front of the address
inline constexpr size_t most_header_bytes =
    ethernet_bytes + vlan_tag_bytes + ipv6_bytes + udp_bytes;
// The hop limit of packets. Neighbour discovery demands 255 (RFC 4861).
inline constexpr uint8_t usual_hops = 64;
inline constexpr uint8_t link_hops = 255;

// ---- Ethernet

// The header of an Ethernet frame, with its VLAN tag if it has one.
struct EthernetHeader {
  Mac to;
  Mac from;
  uint16_t vlan = 0;  // the VLAN's number, or 0: no tag
  EtherType type = EtherType::ipv4;

  size_t bytes() const { return ethernet_bytes + (vlan != 0 ? vlan_tag_bytes : 0); }
  void emit(std::byte* out) const;
};

// ---- IP

// The fields that the headers of both versions have.
struct IpHeader {
  Eid from;
  Eid to;
  size_t payload_bytes = 0;
  IpProtocol protocol = IpProtocol::udp;
  uint8_t hops = usual_hops;
  uint8_t dscp = 0;
  Ecn ecn = Ecn::not_ect;

  bool is_ipv4() const { return Endpoint{from, 0}.is_ipv4(); }
  size_t bytes() const { return is_ipv4() ? ipv4_bytes : ipv6_bytes; }
  // Writes the header, with DF and the ID 0, and its checksum.
  void emit(std::byte* out) const;
  // Returns the sum of the addresses, the length and the protocol, which the checksums of UDP and
  // ICMPv6 include.
  InternetSum pseudo_sum() const;
};

// ---- UDP

// Writes a UDP header in front of its payload. The checksum is `checksum` as it is to be stored; 0
// means none, which IPv6 does not allow.
void emit_udp(std::byte* out, uint16_t from, uint16_t to, size_t payload, uint16_t checksum);
// Returns the checksum of a datagram. `sum` is that of the pseudo header, of the UDP header with a
// checksum of 0, and of the payload.
uint16_t udp_checksum(const InternetSum& sum);

// The ports of a datagram.
struct UdpPorts {
  uint16_t from = 0;
  uint16_t to = 0;
};

}  // namespace urma::drivers::dpdk
