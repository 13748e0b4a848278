#include "drivers/dpdk/headers.h"

#include <algorithm>

#include "base/bits.h"

namespace urma::drivers::dpdk {
namespace {

constexpr size_t mapped_bytes = 12;  // of an IPv4 address as an Eid, in front of the address
constexpr uint16_t vlan_bits = 0x0fff;
constexpr uint16_t dont_fragment = 0x4000;
constexpr uint16_t fragment_bits = 0x3fff;  // more fragments, and the offset

Eid eid_of_ipv4(const std::byte* at) {
  Eid out;
  std::memcpy(out.bytes.data(), Endpoint::mapped_prefix, mapped_bytes);
  std::memcpy(out.bytes.data() + mapped_bytes, at, 4);
  return out;
}

void emit_ipv4(const IpHeader& header, std::byte* out) {
  out[0] = std::byte{0x45};
  out[1] = static_cast<std::byte>(header.dscp << 2 | static_cast<unsigned>(header.ecn));
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

void note_class(uint8_t traffic_class, IpHeader& header) {
  header.dscp = static_cast<uint8_t>(traffic_class >> 2);
  header.ecn = static_cast<Ecn>(traffic_class & 3);
}

Flaw parse_ipv4(std::span<const std::byte>& bytes, IpHeader& header) {
  if (bytes.size() < ipv4_bytes) return Flaw::malformed;
  const auto first = static_cast<uint8_t>(bytes[0]);
  const size_t size = size_t{first & 0xfu} * 4;
  const size_t total = load_be<2>(&bytes[2]);
  if (first >> 4 != 4 || size < ipv4_bytes || total < size || total > bytes.size()) {
    return Flaw::malformed;
  }
  if (InternetSum().add(bytes.first(size)).folded() != 0xffff) return Flaw::checksum;
  if ((load_be<2>(&bytes[6]) & fragment_bits) != 0) return Flaw::foreign;
  note_class(static_cast<uint8_t>(bytes[1]), header);
  header.hops = static_cast<uint8_t>(bytes[8]);
  header.protocol = static_cast<IpProtocol>(bytes[9]);
  header.from = eid_of_ipv4(&bytes[12]);
  header.to = eid_of_ipv4(&bytes[16]);
  bytes = bytes.subspan(size, total - size);
  header.payload_bytes = bytes.size();
  return Flaw::none;
}

Flaw parse_ipv6(std::span<const std::byte>& bytes, IpHeader& header) {
  if (bytes.size() < ipv6_bytes) return Flaw::malformed;
  const auto first = static_cast<uint32_t>(load_be<4>(bytes.data()));
  const size_t payload = load_be<2>(&bytes[4]);
  if (first >> 28 != 6 || payload > bytes.size() - ipv6_bytes) return Flaw::malformed;
  note_class(static_cast<uint8_t>(first >> 20), header);
  header.protocol = static_cast<IpProtocol>(bytes[6]);
  header.hops = static_cast<uint8_t>(bytes[7]);
  std::memcpy(header.from.bytes.data(), &bytes[8], 16);
  std::memcpy(header.to.bytes.data(), &bytes[24], 16);
  // A mapped address has no place in a packet of IPv6: it would be taken for IPv4.
  if (Endpoint{header.from, 0}.is_ipv4() || Endpoint{header.to, 0}.is_ipv4()) {
    return Flaw::malformed;
  }
  bytes = bytes.subspan(ipv6_bytes, payload);
  header.payload_bytes = payload;
  return Flaw::none;
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

std::optional<EthernetHeader> parse_ethernet(std::span<const std::byte> frame, size_t& header) {
  if (frame.size() < ethernet_bytes) return std::nullopt;
  EthernetHeader out;
  std::memcpy(out.to.data(), frame.data(), out.to.size());
  std::memcpy(out.from.data(), frame.data() + 6, out.from.size());
  out.type = static_cast<EtherType>(load_be<2>(&frame[12]));
  header = ethernet_bytes;
  if (out.type != EtherType::vlan) return out;
  if (frame.size() < ethernet_bytes + vlan_tag_bytes) return std::nullopt;
  out.vlan = static_cast<uint16_t>(load_be<2>(&frame[14]) & vlan_bits);
  out.type = static_cast<EtherType>(load_be<2>(&frame[16]));
  header += vlan_tag_bytes;
  return out;
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

Flaw parse_ip(EtherType type, std::span<const std::byte>& bytes, IpHeader& header) {
  if (type == EtherType::ipv4) return parse_ipv4(bytes, header);
  if (type == EtherType::ipv6) return parse_ipv6(bytes, header);
  return Flaw::foreign;
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

Flaw parse_udp(const IpHeader& ip, std::span<const std::byte>& bytes, bool verify,
               UdpPorts& ports) {
  if (bytes.size() < udp_bytes) return Flaw::malformed;
  ports.from = static_cast<uint16_t>(load_be<2>(bytes.data()));
  ports.to = static_cast<uint16_t>(load_be<2>(&bytes[2]));
  const size_t length = load_be<2>(&bytes[4]);
  const bool summed = load_be<2>(&bytes[6]) != 0;
  if (length != bytes.size() || ports.from == 0) return Flaw::malformed;
  if (!summed && !ip.is_ipv4()) return Flaw::checksum;
  if (verify && summed && ip.pseudo_sum().add(bytes).folded() != 0xffff) return Flaw::checksum;
  bytes = bytes.subspan(udp_bytes);
  return Flaw::none;
}

}  // namespace urma::drivers::dpdk
