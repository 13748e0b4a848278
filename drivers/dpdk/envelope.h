// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <span>

#include "drivers/dpdk/headers.h"

namespace urma::drivers::dpdk {

// The headers in front of the packets to one host. All of them but a few fields are the same, so
// they are formed once: to copy them takes a fifth of the instructions. The station owns it.
class Envelope {
 public:
  // UDP source ports of this range are path entropy: the packet comes from the UB port of its
  // sender. It lies above the range from which Linux takes free ports.
  static constexpr uint16_t first_entropy = 61000;

  Envelope() = default;
  // `spreads`: the source port depends on the flow of the packet, otherwise it is `ports.from`.
  Envelope(const EthernetHeader& ethernet, const IpHeader& ip, const UdpPorts& ports, bool spreads);

  // The fields that differ from packet to packet.
  struct Marks {
    Ecn ecn = Ecn::not_ect;
    uint32_t flow = 0;
    // Whether the UDP checksum of IPv6 is computed. Otherwise the field has the sum that a port
    // which computes it wants to find there.
    bool sums = true;
    const InternetSum* sum = nullptr;  // of the packet's bytes, if not all of them are in `packet`
  };
  // Writes the headers in front of the packet, which must have room for `most_header_bytes` there,
  // even if they have fewer.
  void put(std::span<std::byte> packet, const Marks& marks) const;

 private:
  void finish_ipv4(std::byte* ip, size_t bytes, Ecn ecn) const;
  void finish_ipv6(std::byte* udp, std::span<const std::byte> packet, const Marks& marks) const;

  std::array<std::byte, most_header_bytes> bytes_{};  // the headers are at its end
  InternetSum sum_;  // IPv4: of the header without lengths; IPv6: of the pseudo header
  bool is_ipv4_ = true;
  bool spreads_ = false;
};

}  // namespace urma::drivers::dpdk
