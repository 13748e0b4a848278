// SPDX-License-Identifier: Apache-2.0
#include "drivers/pcap/ip_headers.h"

#include "base/bits.h"

namespace urma::drivers::pcap {
namespace {

constexpr size_t ipv4_bytes = 20;
constexpr size_t ipv6_bytes = 40;
constexpr size_t jumbo_bytes = 8;  // an extension header with one option (RFC 2675)
constexpr size_t udp_bytes = 8;
constexpr size_t most_length = 65535;
constexpr std::byte udp_protocol{17};
constexpr std::byte hop_limit{64};

bool is_ipv4(const Endpoint& from, const Endpoint& to) { return from.is_ipv4() && to.is_ipv4(); }
bool is_jumbo(size_t packet_bytes) { return udp_bytes + packet_bytes > most_length; }

// The Internet checksum (RFC 1071). Its result has the byte order in which the words were added.
class Sum {
 public:
  void add(const std::byte* data, size_t bytes) {
    uint32_t word;
    for (; bytes >= sizeof word; data += sizeof word, bytes -= sizeof word) {
      std::memcpy(&word, data, sizeof word);
      sum_ += word;
    }
    word = 0;
    std::memcpy(&word, data, bytes);
    sum_ += word;
  }
  uint16_t complement() const {
    uint64_t sum = sum_;
    while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
    return static_cast<uint16_t>(~sum);
  }

 private:
  uint64_t sum_ = 0;
};

void put_ipv4(std::byte* at, const Endpoint& from, const Endpoint& to, size_t payload, Ecn ecn) {
  at[0] = std::byte{0x45};
  at[1] = static_cast<std::byte>(ecn);
  store_be<2>(at + 2, ipv4_bytes + payload);
  store_be<4>(at + 4, 0x4000);  // ID 0, DF
  at[8] = hop_limit;
  at[9] = udp_protocol;
  store_be<2>(at + 10, 0);
  std::memcpy(at + 12, from.address.bytes.data() + 12, 4);
  std::memcpy(at + 16, to.address.bytes.data() + 12, 4);
  Sum sum;
  sum.add(at, ipv4_bytes);
  const uint16_t checksum = sum.complement();
  std::memcpy(at + 10, &checksum, sizeof checksum);
}

void put_ipv6(std::byte* at, const Endpoint& from, const Endpoint& to, size_t payload, bool jumbo,
              Ecn ecn) {
  store_be<4>(at, 0x60000000 | static_cast<uint32_t>(ecn) << 20);
  store_be<2>(at + 4, jumbo ? 0 : payload);
  at[6] = jumbo ? std::byte{0} : udp_protocol;  // 0: options for each hop
  at[7] = hop_limit;
  std::memcpy(at + 8, from.address.bytes.data(), 16);
  std::memcpy(at + 24, to.address.bytes.data(), 16);
  if (!jumbo) return;
  at += ipv6_bytes;
  at[0] = udp_protocol;
  at[1] = std::byte{0};
  store_be<2>(at + 2, 0xc204);  // the option, with 4 bytes: the payload's length
  store_be<4>(at + 4, jumbo_bytes + payload);
}

void put_udp(std::byte* at, const Endpoint& from, const Endpoint& to, size_t bytes) {
  store_be<2>(at, from.port);
  store_be<2>(at + 2, to.port);
  store_be<2>(at + 4, bytes > most_length ? 0 : bytes);
  store_be<2>(at + 6, 0);
  std::byte pseudo[8];
  store_be<4>(pseudo, bytes);
  store_be<4>(pseudo + 4, static_cast<uint64_t>(udp_protocol));
  Sum sum;
  const size_t skipped = is_ipv4(from, to) ? 12 : 0;
  sum.add(from.address.bytes.data() + skipped, 16 - skipped);
  sum.add(to.address.bytes.data() + skipped, 16 - skipped);
  sum.add(pseudo, sizeof pseudo);
  sum.add(at, bytes);
  const uint16_t computed = sum.complement();
  const uint16_t checksum = computed == 0 ? 0xffff : computed;  // 0: none
  std::memcpy(at + 6, &checksum, sizeof checksum);
}

}  // namespace

size_t ip_header_bytes(const Endpoint& from, const Endpoint& to, size_t packet_bytes) {
  if (is_ipv4(from, to)) return ipv4_bytes + udp_bytes;
  return ipv6_bytes + (is_jumbo(packet_bytes) ? jumbo_bytes : 0) + udp_bytes;
}

void put_ip_headers(std::byte* out, const Endpoint& from, const Endpoint& to, size_t packet_bytes,
                    Ecn ecn) {
  const size_t payload = udp_bytes + packet_bytes;
  if (is_ipv4(from, to)) {
    put_ipv4(out, from, to, payload, ecn);
  } else {
    put_ipv6(out, from, to, payload, is_jumbo(packet_bytes), ecn);
  }
  put_udp(out + ip_header_bytes(from, to, packet_bytes) - udp_bytes, from, to, payload);
}

}  // namespace urma::drivers::pcap
