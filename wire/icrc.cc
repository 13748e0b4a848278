// SPDX-License-Identifier: Apache-2.0
#include "wire/icrc.h"

#include <array>
#include <cstring>

#include "base/bits.h"
#include "base/crc32.h"
#include "wire/nth.h"

namespace urma {
namespace {

constexpr size_t udp_bytes = 8;
constexpr size_t ipv4_bytes = 20;
constexpr size_t ipv6_bytes = 40;
constexpr uint8_t protocol_udp = 17;

// The headers of the network in front of the transport header. Fields that a router may rewrite
// (UB 3.3: ToS or traffic class, TTL or hop limit, checksums) are all ones.
struct CanonicalHeaders {
  std::array<std::byte, ipv6_bytes + udp_bytes> bytes{};
  size_t size = 0;
};

void put_udp(std::byte* at, const Endpoint& from, const Endpoint& to, size_t payload) {
  store_be<2>(at, from.port);
  store_be<2>(at + 2, to.port);
  store_be<2>(at + 4, udp_bytes + payload);
  store_be<2>(at + 6, 0xffff);  // checksum
}

CanonicalHeaders ipv4_headers(const Endpoint& from, const Endpoint& to, size_t payload) {
  CanonicalHeaders out;
  std::byte* at = out.bytes.data();
  at[0] = std::byte{0x45};
  at[1] = std::byte{0xff};  // ToS
  store_be<2>(at + 2, ipv4_bytes + udp_bytes + payload);
  store_be<2>(at + 4, 0);       // ID: 0, whatever value was sent (docs/protocol.md)
  store_be<2>(at + 6, 0x4000);  // DF
  at[8] = std::byte{0xff};      // TTL
  at[9] = std::byte{protocol_udp};
  store_be<2>(at + 10, 0xffff);  // checksum
  std::memcpy(at + 12, from.address.bytes.data() + 12, 4);
  std::memcpy(at + 16, to.address.bytes.data() + 12, 4);
  put_udp(at + ipv4_bytes, from, to, payload);
  out.size = ipv4_bytes + udp_bytes;
  return out;
}

CanonicalHeaders ipv6_headers(const Endpoint& from, const Endpoint& to, size_t payload) {
  CanonicalHeaders out;
  std::byte* at = out.bytes.data();
  store_be<4>(at, 0x6ff00000);  // version 6, traffic class as ones, flow label 0
  store_be<2>(at + 4, udp_bytes + payload);
  at[6] = std::byte{protocol_udp};
  at[7] = std::byte{0xff};  // hop limit
  std::memcpy(at + 8, from.address.bytes.data(), 16);
  std::memcpy(at + 24, to.address.bytes.data(), 16);
  put_udp(at + ipv6_bytes, from, to, payload);
  out.size = ipv6_bytes + udp_bytes;
  return out;
}

// UB 3.3, CFG 7.
CanonicalHeaders switched_headers(const Endpoint& from, const Endpoint& to) {
  CanonicalHeaders out;
  const std::span<std::byte> all(out.bytes);
  Cna24Nth{
      .source = cna_of(from.address), .destination = cna_of(to.address), .cci = 0xffff, .lbf = 0xff}
      .emit(all.first<Cna24Nth::size>());
  out.size = Cna24Nth::size;
  return out;
}

CanonicalHeaders headers_of(const Endpoint& from, const Endpoint& to, size_t payload) {
  if (to.is_ipv4()) return ipv4_headers(from, to, payload);
  return is_switched(to.address) ? switched_headers(from, to) : ipv6_headers(from, to, payload);
}

// The ICRC is sent least significant byte first, as the CRCs of Ethernet and RoCE (INFERRED).
void store_icrc(std::byte* at, uint32_t icrc) {
  for (size_t i = 0; i < icrc_bytes; ++i) at[i] = static_cast<std::byte>(icrc >> 8 * i);
}

}  // namespace

IcrcPrefix::Entry IcrcPrefix::compute(const Endpoint& from, const Endpoint& to, size_t ub_bytes) {
  const CanonicalHeaders headers = headers_of(from, to, ub_bytes);
  return {from, to, ub_bytes, crc32_update(crc32_start, headers.bytes.data(), headers.size)};
}

void seal(TxFrame& frame, const Endpoint& from, IcrcPrefix& prefix) {
  seal(frame, frame.bytes(), from, prefix);
}

void seal(TxFrame& frame, size_t bytes, const Endpoint& from, IcrcPrefix& prefix) {
  uint32_t crc = prefix(from, frame.to, bytes + icrc_bytes);
  crc = crc32_update(crc, frame.head, frame.head_bytes);
  for (unsigned i = 0; i < frame.piece_count; ++i) {
    crc = crc32_update(crc, frame.pieces[i].data, frame.pieces[i].bytes);
  }
  crc = crc32_update(crc, frame.tail.data(), frame.tail_bytes);
  store_icrc(frame.tail.data() + frame.tail_bytes, crc32_finish(crc));
  frame.tail_bytes = static_cast<uint8_t>(frame.tail_bytes + icrc_bytes);
}

bool verify(std::span<const std::byte> packet, const Endpoint& from, const Endpoint& to,
            IcrcPrefix& prefix) {
  if (packet.size() < icrc_bytes) return false;
  const auto body = packet.first(packet.size() - icrc_bytes);
  const uint32_t crc = crc32_update(prefix(from, to, packet.size()), body.data(), body.size());
  std::array<std::byte, icrc_bytes> expected;
  store_icrc(expected.data(), crc32_finish(crc));
  return std::memcmp(expected.data(), body.data() + body.size(), icrc_bytes) == 0;
}

}  // namespace urma
