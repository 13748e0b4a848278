// SPDX-License-Identifier: Apache-2.0
#include "drivers/dpdk/headers.h"

#include <algorithm>

#include "base/bits.h"

namespace urma::drivers::dpdk {
namespace {

constexpr uint16_t dont_fragment = 0x4000;

void emit_ipv4(const IpHeader& header, std::byte* out) {
  out[0] = std::byte{0x45};
  out[1] = static_cast<std::byte>(unsigned{header.dscp} << 2 | static_cast<unsigned>(header.ecn));
  store_be<2>(out + 2, ipv4_bytes + header.payload_bytes);
  store_be<4>(out + 4, dont_fragment);
  out[8] = std::byte{header.hops};
  out[9] = static_cast<std::byte>(header.protocol);
  store_be<2>(out + 10, 0);
  std::memcpy(out + 12, header.from.bytes.data() + mapped_bytes, 4);
  std::memcpy(out + 16, header.to.bytes.data() + mapped_bytes, 4);
  const uint16_t checksum = InternetSum().add({out, ipv4_bytes}).checksum();
  std::memcpy(out + 10, &checksum, sizeof checksum);
}

void emit_ipv6(const IpHeader& header, std::byte* out) {
  const uint32_t traffic_class =
      static_cast<uint32_t>(header.dscp) << 2 | static_cast<uint32_t>(header.ecn);
  store_be<4>(out, uint32_t{6} << 28 | traffic_class << 20);
  store_be<2>(out + 4, header.payload_bytes);
  out[6] = static_cast<std::byte>(header.protocol);
  out[7] = std::byte{header.hops};
  std::memcpy(out + 8, header.from.bytes.data(), 16);
  std::memcpy(out + 24, header.to.bytes.data(), 16);
}

}  // namespace

void EthernetHeader::emit(std::byte* out) const {
  std::memcpy(out, to.data(), to.size());
  std::memcpy(out + 6, from.data(), from.size());
  if (vlan != 0) {
    store_be<2>(out + 12, static_cast<uint64_t>(EtherType::vlan));
    store_be<2>(out + 14, vlan);
    out += vlan_tag_bytes;
  }
  store_be<2>(out + 12, static_cast<uint64_t>(type));
}

void IpHeader::emit(std::byte* out) const {
  is_ipv4() ? emit_ipv4(*this, out) : emit_ipv6(*this, out);
}

InternetSum IpHeader::pseudo_sum() const {
  const size_t skipped = is_ipv4() ? mapped_bytes : 0;
  std::byte rest[8];
  store_be<4>(rest, payload_bytes);
  store_be<4>(rest + 4, static_cast<uint64_t>(protocol));
  return InternetSum()
      .add(std::span(from.bytes).subspan(skipped))
      .add(std::span(to.bytes).subspan(skipped))
      .add(rest);
}

void emit_udp(std::byte* out, uint16_t from, uint16_t to, size_t payload, uint16_t checksum) {
  store_be<2>(out, from);
  store_be<2>(out + 2, to);
  store_be<2>(out + 4, udp_bytes + payload);
  std::memcpy(out + 6, &checksum, sizeof checksum);
}

uint16_t udp_checksum(const InternetSum& sum) {
  const uint16_t checksum = sum.checksum();
  return checksum == 0 ? 0xffff : checksum;  // 0 means that there is none
}

}  // namespace urma::drivers::dpdk
