// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <span>
#include <vector>

#include "base/bits.h"
#include "drivers/dpdk/envelope.h"
#include "drivers/dpdk/headers.h"
#include "drivers/dpdk/neighbours.h"
#include "drivers/dpdk/parsing.h"

namespace urma::drivers::dpdk {

// A host with one IP address on an Ethernet: it makes the envelopes of packets, for which it finds
// the MAC address of the next hop, reads the headers of arrived ones, and answers ARP, NDP and
// ping. Takes bytes and the time, and returns bytes; it knows neither DPDK nor UB. The port owns
// it; only the thread that runs the port calls it.
class Station {
 public:
  struct Settings {
    Mac mac{};
    Eid address;
    unsigned prefix_bits = 24;  // of IPv4 or IPv6; addresses with the same prefix are on the link
    Eid gateway{};              // all zeros if there is none
    uint16_t port = ub_port;    // UDP
    uint32_t ip_mtu = 1500;     // the largest IP packet
    uint16_t vlan = 0;          // 0: untagged
    uint8_t dscp = 0;
    // Whether the UDP source port of a packet depends on its flow. The receiver must know that such
    // a port is not an address (is_entropy).
    bool entropy = false;
  };
  explicit Station(const Settings& settings);

  const Settings& settings() const { return settings_; }
  Endpoint self() const { return {settings_.address, settings_.port}; }
  bool is_ipv4() const { return is_ipv4_; }
  static constexpr bool is_entropy(uint16_t port) { return port >= Envelope::first_entropy; }

  // ---- outwards

  // Returns the number of bytes of the headers in front of each packet.
  size_t header_bytes() const { return header_bytes_; }
  // Returns whether a packet to this address can leave: to a host on the link, or by the gateway.
  bool reaches(const Eid& to) const;
  // Returns the headers of packets to this host, valid until the next call. Returns null if it is
  // not reachable, or if the MAC address of the next hop is not known yet; then a question is sent,
  // and the caller tries again later.
  const Envelope* envelope(const Endpoint& to, Time now) {
    const Addressed& one = addressed_[place_of(to)];
    const bool valid = one.to == to && now < one.until && one.changes == neighbours_.changes();
    return valid ? &one.envelope : address(to, now);
  }

  // ---- inwards

  enum class Kind : uint8_t {
    packet,     // UDP to this host's port
    answered,   // ARP, NDP or ping, for which an answer may be among the messages
    foreign,    // for another host, port or protocol
    malformed,  // too short, or it contradicts itself
    checksum,   // a wrong checksum
  };
  struct Arrival {
    Kind kind = Kind::foreign;
    std::span<const std::byte> packet = {};
    Endpoint from = {};
    Ecn ecn = Ecn::not_ect;
  };
  // Reads a frame. `verify`: whether the UDP checksum is to be compared, which the port may have
  // done.
  [[gnu::always_inline]] Arrival take(std::span<const std::byte> frame, bool verify, Time now) {
    std::span<const std::byte> bytes = frame;
    ArrivedEthernet ethernet;
    if (!parse_ethernet(bytes, ethernet)) return {.kind = Kind::malformed};
    if (!is_for_us(ethernet)) return {};
    if (ethernet.type == EtherType::arp) return {.kind = take_arp(bytes, now)};
    IpHeader ip;
    const Flaw flaw = parse_ip(ethernet.type, bytes, ip);
    if (flaw != Flaw::none) return {.kind = kind_of(flaw)};
    if (ip.protocol != IpProtocol::udp) return {.kind = take_message(frame, now)};
    if (ethernet.to_group() || !is_same(ip.to, settings_.address) || !is_host(ip.from)) return {};
    UdpPorts ports;
    const Flaw udp_flaw = parse_udp(ethernet.type, ip, bytes, verify, ports);
    if (udp_flaw != Flaw::none) return {.kind = kind_of(udp_flaw)};
    if (ports.to != settings_.port) return {};
    return {.kind = Kind::packet,
            .packet = bytes,
            .from = {ip.from, is_entropy(ports.from) ? ub_port : ports.from},
            .ecn = ip.ecn};
  }

  // ---- messages of the station's own, whole frames

  // Returns the next one, or an empty span. It is valid until `pop_message`.
  std::span<const std::byte> message() const;
  void pop_message();
  // States this host's address to all hosts on the link: after the link has come up.
  void announce();

 private:
  static constexpr size_t most_messages = 16;

  // An envelope that was made. It is made anew from time to time, so that neighbours that are in
  // use are asked whether they still have their address.
  struct Addressed {
    Endpoint to;
    Time until{};
    uint32_t changes = 0;  // of neighbours, before it was made
    Envelope envelope;
  };
  static constexpr size_t most_addressed = 256;
  static constexpr Duration between_lookups = std::chrono::milliseconds(100);

  static size_t place_of(const Endpoint& to) {
    const uint64_t key = load_be<8>(to.address.bytes.data() + 8) ^ uint64_t { to.port } << 32;
    return (key * 0x9e3779b97f4a7c15u) >> 32 & (most_addressed - 1);
  }
  const Envelope* address(const Endpoint& to, Time now);
  const Mac* next_hop(const Eid& to, Time now);
  bool on_link(const Eid& address) const;
  // Returns whether the address can be that of one other host.
  bool is_host(const Eid& address) const {
    const auto first = static_cast<uint8_t>(address.bytes[is_ipv4_ ? mapped_bytes : 0]);
    if (is_ipv4_ ? first == 0 || first >= 224 : first == 0xff || is_same(address, Eid{})) {
      return false;
    }
    return !is_same(address, settings_.address);
  }
  std::byte* begin_message(size_t bytes, const Mac& to, EtherType type);
  void send_arp(uint16_t operation, const Mac& to, const Mac& target_mac, const Eid& target);
  void send_neighbour(uint8_t type, const Eid& to, const Mac& to_mac, const Eid& target,
                      uint8_t flags);
  void ask(const Eid& ip);
  void learn(const Eid& ip, const Mac& mac, bool asks_us, Time now);
  // Returns whether a frame is to this host, or to all hosts or a group, and from another host.
  bool is_for_us(const ArrivedEthernet& header) const {
    if (header.vlan != settings_.vlan || is_at(header.from, settings_.mac)) return false;
    return header.to_group() || is_at(header.to, settings_.mac);
  }
  static Kind kind_of(Flaw flaw);
  Kind take_arp(std::span<const std::byte> bytes, Time now);
  Kind take_message(std::span<const std::byte> frame, Time now);
  Kind take_icmp(const Mac& sender, const IpHeader& ip, std::span<const std::byte> bytes);
  Kind take_icmpv6(const Mac& sender, const IpHeader& ip, std::span<const std::byte> bytes,
                   Time now);
  Kind take_neighbour(const Mac& sender, const IpHeader& ip, std::span<const std::byte> bytes,
                      Time now);
  void echo(const Mac& sender, const IpHeader& ip, std::span<const std::byte> bytes);

  const Settings settings_;
  const bool is_ipv4_;
  const size_t header_bytes_;
  Neighbours neighbours_;
  std::vector<Addressed> addressed_;
  const size_t message_room_;
  std::vector<std::byte> messages_;  // one behind the other, each with `message_room_`
  std::array<size_t, most_messages> message_bytes_{};
  size_t first_message_ = 0;
  size_t message_count_ = 0;
};

}  // namespace urma::drivers::dpdk
