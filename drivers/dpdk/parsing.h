// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/bits.h"
#include "drivers/dpdk/headers.h"

namespace urma::drivers::dpdk {

// Reads the headers around packets. The functions are always inlined: a compiler that called one of
// them would keep the headers of each arrived packet in memory.

// The flaw of the bytes of a header, or none.
enum class Flaw : uint8_t {
  none,
  malformed,  // too short, or it contradicts itself
  checksum,
  foreign,  // correct, and not understood: a fragment, an extension header, another protocol
};

// The header of an Ethernet frame that has arrived.
struct ArrivedEthernet {
  const std::byte* to = nullptr;    // a Mac in the frame
  const std::byte* from = nullptr;  // the same
  uint16_t vlan = 0;                // the VLAN's number, or 0: no tag
  EtherType type = EtherType::ipv4;

  bool to_group() const { return (*to & std::byte{1}) != std::byte{0}; }
};
// Parses the header at the front of the frame, and removes it. Returns false if the frame ends
// within it. A tag of VLAN 0, which has only a priority, is removed, too.
[[gnu::always_inline]] inline bool parse_ethernet(std::span<const std::byte>& frame,
                                                  ArrivedEthernet& header) {
  constexpr uint16_t vlan_bits = 0x0fff;
  if (frame.size() < ethernet_bytes) return false;
  const std::byte* const at = frame.data();
  header.to = at;
  header.from = at + 6;
  header.type = static_cast<EtherType>(load_be<2>(at + 12));
  size_t bytes = ethernet_bytes;
  if (header.type == EtherType::vlan) {
    bytes += vlan_tag_bytes;
    if (frame.size() < bytes) return false;
    header.vlan = static_cast<uint16_t>(load_be<2>(at + 14) & vlan_bits);
    header.type = static_cast<EtherType>(load_be<2>(at + 16));
  }
  frame = frame.subspan(bytes);
  return true;
}

namespace parsing {

inline Eid eid_of_ipv4(const std::byte* at) {
  Eid out;
  std::memcpy(out.bytes.data(), Endpoint::mapped_prefix, mapped_bytes);
  std::memcpy(out.bytes.data() + mapped_bytes, at, 4);
  return out;
}

[[gnu::always_inline]] inline Flaw parse_ipv4(std::span<const std::byte>& bytes, IpHeader& header) {
  constexpr uint16_t fragment_bits = 0x3fff;  // more fragments, and the offset
  if (bytes.size() < ipv4_bytes) return Flaw::malformed;
  const std::byte* const at = bytes.data();
  const auto first = static_cast<uint8_t>(at[0]);
  const size_t size = size_t{first & 0xfu} * 4;
  const size_t total = load_be<2>(at + 2);
  if (first >> 4 != 4 || size < ipv4_bytes || total < size || total > bytes.size()) {
    return Flaw::malformed;
  }
  InternetSum sum;
  sum.add_four(at).add_four(at + 4).add_four(at + 8).add_four(at + 12).add_four(at + 16);
  if (size > ipv4_bytes) sum = InternetSum(sum).add({at + ipv4_bytes, size - ipv4_bytes});
  if (sum.folded() != 0xffff) return Flaw::checksum;
  if ((load_be<2>(at + 6) & fragment_bits) != 0) return Flaw::foreign;
  header.ecn = static_cast<Ecn>(static_cast<uint8_t>(at[1]) & 3);
  header.hops = static_cast<uint8_t>(at[8]);
  header.protocol = static_cast<IpProtocol>(at[9]);
  header.from = eid_of_ipv4(at + 12);
  header.to = eid_of_ipv4(at + 16);
  header.payload_bytes = total - size;
  bytes = {at + size, header.payload_bytes};
  return Flaw::none;
}

[[gnu::always_inline]] inline Flaw parse_ipv6(std::span<const std::byte>& bytes, IpHeader& header) {
  if (bytes.size() < ipv6_bytes) return Flaw::malformed;
  const std::byte* const at = bytes.data();
  const auto first = static_cast<uint32_t>(load_be<4>(at));
  const size_t payload = load_be<2>(at + 4);
  if (first >> 28 != 6 || payload > bytes.size() - ipv6_bytes) return Flaw::malformed;
  header.ecn = static_cast<Ecn>(first >> 20 & 3);
  header.protocol = static_cast<IpProtocol>(at[6]);
  header.hops = static_cast<uint8_t>(at[7]);
  std::memcpy(header.from.bytes.data(), at + 8, 16);
  std::memcpy(header.to.bytes.data(), at + 24, 16);
  // A mapped address has no place in a packet of IPv6: it would be taken for IPv4.
  if (Endpoint{header.from, 0}.is_ipv4() || Endpoint{header.to, 0}.is_ipv4()) {
    return Flaw::malformed;
  }
  header.payload_bytes = payload;
  bytes = {at + ipv6_bytes, payload};
  return Flaw::none;
}

}  // namespace parsing

// Parses the header at the front of `bytes`, and removes it and all that lies behind the datagram,
// such as the padding of Ethernet. The DSCP is not read.
[[gnu::always_inline]] inline Flaw parse_ip(EtherType type, std::span<const std::byte>& bytes,
                                            IpHeader& header) {
  if (type == EtherType::ipv4) return parsing::parse_ipv4(bytes, header);
  if (type == EtherType::ipv6) return parsing::parse_ipv6(bytes, header);
  return Flaw::foreign;
}

// Parses the header of a datagram and removes it. Compares the checksum, if `verify` is set and the
// datagram has one.
[[gnu::always_inline]] inline Flaw parse_udp(EtherType type, const IpHeader& ip,
                                             std::span<const std::byte>& bytes, bool verify,
                                             UdpPorts& ports) {
  if (bytes.size() < udp_bytes) return Flaw::malformed;
  const std::byte* const at = bytes.data();
  ports.from = static_cast<uint16_t>(load_be<2>(at));
  ports.to = static_cast<uint16_t>(load_be<2>(at + 2));
  const size_t length = load_be<2>(at + 4);
  const bool summed = load_be<2>(at + 6) != 0;
  if (length != bytes.size() || ports.from == 0) return Flaw::malformed;
  if (!summed && type != EtherType::ipv4) return Flaw::checksum;
  if (verify && summed) {
    // A copy of what is needed, so that `ip` stays in registers.
    const IpHeader copy{
        .from = ip.from, .to = ip.to, .payload_bytes = ip.payload_bytes, .protocol = ip.protocol};
    if (copy.pseudo_sum().add(bytes).folded() != 0xffff) return Flaw::checksum;
  }
  bytes = bytes.subspan(udp_bytes);
  return Flaw::none;
}

}  // namespace urma::drivers::dpdk
