// SPDX-License-Identifier: Apache-2.0
#include "drivers/dpdk/envelope.h"

#include "base/bits.h"

namespace urma::drivers::dpdk {
namespace {

// Where fields lie in the headers of IPv4, IPv6 and UDP.
constexpr size_t ipv4_class_at = 1;
constexpr size_t ipv4_length_at = 2;
constexpr size_t ipv4_checksum_at = 10;
constexpr size_t ipv6_class_at = 1;
constexpr size_t ipv6_length_at = 4;
constexpr size_t udp_length_at = 4;
constexpr size_t udp_checksum_at = 6;

}  // namespace

Envelope::Envelope(const EthernetHeader& ethernet, const IpHeader& ip, const UdpPorts& ports,
                   bool spreads)
    : is_ipv4_(ip.is_ipv4()), spreads_(spreads) {
  std::byte* const udp = bytes_.data() + bytes_.size() - udp_bytes;
  std::byte* const at = udp - ip.bytes();
  ethernet.emit(at - ethernet.bytes());
  ip.emit(at);
  emit_udp(udp, ports.from, ports.to, 0, 0);
  if (!is_ipv4_) {
    sum_ = ip.pseudo_sum();
    return;
  }
  store_be<2>(at + ipv4_length_at, 0);
  store_be<2>(at + ipv4_checksum_at, 0);
  sum_.add({at, ipv4_bytes});
}

void Envelope::put(std::span<std::byte> packet, const Marks& marks) const {
  // A size that the compiler knows: some of these bytes are in front of the headers.
  std::memcpy(packet.data() - bytes_.size(), bytes_.data(), bytes_.size());
  std::byte* const udp = packet.data() - udp_bytes;
  const size_t bytes = udp_bytes + packet.size();
  if (spreads_) store_be<2>(udp, first_entropy + marks.flow % (65536u - first_entropy));
  store_be<2>(udp + udp_length_at, bytes);
  // With IPv4, UDP needs no checksum: the packet has a stronger one of its own, the ICRC.
  is_ipv4_ ? finish_ipv4(udp - ipv4_bytes, ipv4_bytes + bytes, marks.ecn)
           : finish_ipv6(udp, packet, marks);
}

inline void Envelope::finish_ipv4(std::byte* ip, size_t bytes, Ecn ecn) const {
  std::byte added[4];  // to the words of the header that are 0 in `sum_`, or lack ECN
  store_be<2>(added, static_cast<uint64_t>(ecn));
  store_be<2>(added + 2, bytes);
  ip[ipv4_class_at] |= static_cast<std::byte>(ecn);
  store_be<2>(ip + ipv4_length_at, bytes);
  const uint16_t checksum = InternetSum(sum_).add_four(added).checksum();
  std::memcpy(ip + ipv4_checksum_at, &checksum, sizeof checksum);
}

void Envelope::finish_ipv6(std::byte* udp, std::span<const std::byte> packet,
                           const Marks& marks) const {
  std::byte* const ip = udp - ipv6_bytes;
  const size_t bytes = udp_bytes + packet.size();
  ip[ipv6_class_at] |= static_cast<std::byte>(static_cast<unsigned>(marks.ecn) << 4);
  store_be<2>(ip + ipv6_length_at, bytes);
  InternetSum sum(sum_);
  sum.add(std::span<const std::byte>(ip + ipv6_length_at, 2));
  uint16_t checksum = sum.folded();
  if (marks.sums) {
    sum.add(std::span<const std::byte>(udp, udp_bytes));
    marks.sum != nullptr ? sum.add(*marks.sum) : sum.add(packet);
    checksum = udp_checksum(sum);
  }
  std::memcpy(udp + udp_checksum_at, &checksum, sizeof checksum);
}

}  // namespace urma::drivers::dpdk
