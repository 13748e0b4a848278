// SPDX-License-Identifier: Apache-2.0
#include "drivers/dpdk/station.h"

#include <algorithm>

#include "base/bits.h"
#include "drivers/dpdk/internet_sum.h"
#include "drivers/dpdk/parsing.h"

namespace urma::drivers::dpdk {
namespace {

// ARP (RFC 826), for Ethernet and IPv4.
constexpr size_t arp_bytes = 28;
constexpr uint64_t arp_kind = 0x0001'0800'06'04;  // Ethernet, IPv4, sizes of their addresses
constexpr uint16_t arp_request = 1;
constexpr uint16_t arp_reply = 2;

// ICMP (RFC 792, RFC 4443), and NDP (RFC 4861).
constexpr size_t icmp_bytes = 8;
constexpr auto echo_reply = std::byte{0};
constexpr auto echo_request = std::byte{8};
constexpr auto echo_request6 = std::byte{128};
constexpr auto echo_reply6 = std::byte{129};
constexpr uint8_t solicitation = 135;
constexpr uint8_t advertisement = 136;
constexpr size_t neighbour_bytes = 24;  // of both, without options
constexpr size_t option_bytes = 8;      // of an option with a MAC address
constexpr uint8_t source_option = 1;
constexpr uint8_t target_option = 2;
constexpr uint8_t solicited_flag = 0x40;
constexpr uint8_t override_flag = 0x20;

bool is_unicast(const Mac& mac) { return (mac[0] & std::byte{1}) == std::byte{0}; }

Eid solicited_node(const Eid& address) {
  Eid out;
  out.bytes[0] = std::byte{0xff};
  out.bytes[1] = std::byte{2};
  out.bytes[11] = std::byte{1};
  out.bytes[12] = std::byte{0xff};
  std::copy_n(address.bytes.begin() + 13, 3, out.bytes.begin() + 13);
  return out;
}

Eid all_nodes() {
  Eid out;
  out.bytes[0] = std::byte{0xff};
  out.bytes[1] = std::byte{2};
  out.bytes[15] = std::byte{1};
  return out;
}

// Returns the MAC address of a multicast address of IPv6 (RFC 2464).
Mac multicast_mac(const Eid& ipv6) {
  Mac mac = {std::byte{0x33}, std::byte{0x33}};
  std::copy_n(ipv6.bytes.begin() + 12, 4, mac.begin() + 2);
  return mac;
}

Eid eid_of(std::span<const std::byte, 4> ip) {
  Eid out = ipv4(0, 0, 0, 0);
  std::ranges::copy(ip, out.bytes.begin() + 12);
  return out;
}

Mac mac_at(const std::byte* at) {
  Mac mac;
  std::copy_n(at, mac.size(), mac.begin());
  return mac;
}

// Returns the MAC address in the option of this type, or null if there is none.
const std::byte* find_option(std::span<const std::byte> options, uint8_t type) {
  while (options.size() >= option_bytes) {
    const size_t size = static_cast<size_t>(options[1]) * 8;
    if (size == 0 || size > options.size()) return nullptr;
    if (options[0] == std::byte{type}) return &options[2];
    options = options.subspan(size);
  }
  return nullptr;
}

}  // namespace

Station::Station(const Settings& settings)
    : settings_(settings),
      is_ipv4_(self().is_ipv4()),
      header_bytes_(ethernet_bytes + (settings.vlan != 0 ? vlan_tag_bytes : 0) +
                    (is_ipv4() ? ipv4_bytes : ipv6_bytes) + udp_bytes),
      addressed_(most_addressed),
      message_room_(ethernet_bytes + vlan_tag_bytes + settings.ip_mtu),
      messages_(most_messages * message_room_) {}

// ---- outwards

// Returns whether the address has this host's prefix.
bool Station::on_link(const Eid& address) const {
  if (Endpoint{address, 0}.is_ipv4() != is_ipv4()) return false;
  const unsigned bits = settings_.prefix_bits + (is_ipv4() ? 96 : 0);
  const unsigned whole = bits / 8;
  const auto& own = settings_.address.bytes;
  if (!std::equal(own.begin(), own.begin() + whole, address.bytes.begin())) return false;
  const unsigned rest = bits % 8;
  if (rest == 0) return true;
  return ((own[whole] ^ address.bytes[whole]) >> (8 - rest)) == std::byte{0};
}

bool Station::reaches(const Eid& to) const {
  if (Endpoint{to, 0}.is_ipv4() != is_ipv4() || !is_host(to)) return false;
  return on_link(to) || settings_.gateway != Eid{};
}

const Mac* Station::next_hop(const Eid& to, Time now) {
  const Eid& hop = on_link(to) ? to : settings_.gateway;
  const Neighbours::Found found = neighbours_.find(hop, now);
  if (found.ask) ask(hop);
  return found.mac;
}

const Envelope* Station::address(const Endpoint& to, Time now) {
  const Mac* const hop = reaches(to.address) ? next_hop(to.address, now) : nullptr;
  if (hop == nullptr) return nullptr;
  const EthernetHeader ethernet{.to = *hop,
                                .from = settings_.mac,
                                .vlan = settings_.vlan,
                                .type = is_ipv4() ? EtherType::ipv4 : EtherType::ipv6};
  const IpHeader ip{.from = settings_.address, .to = to.address, .dscp = settings_.dscp};
  Addressed& one = addressed_[place_of(to)];
  one = {.to = to,
         .until = now + between_lookups,
         .changes = neighbours_.changes(),
         .envelope =
             Envelope(ethernet, ip, {.from = settings_.port, .to = to.port}, settings_.entropy)};
  return &one.envelope;
}

// ---- inwards

Station::Kind Station::kind_of(Flaw flaw) {
  if (flaw == Flaw::malformed) return Kind::malformed;
  return flaw == Flaw::checksum ? Kind::checksum : Kind::foreign;
}

void Station::learn(const Eid& ip, const Mac& mac, bool asks_us, Time now) {
  const bool ours = on_link(ip) || ip == settings_.gateway;
  if (!ours || !is_host(ip) || !is_unicast(mac) || mac == Mac{}) return;
  neighbours_.learn(ip, mac, asks_us, now);
}

Station::Kind Station::take_arp(std::span<const std::byte> bytes, Time now) {
  if (bytes.size() < arp_bytes) return Kind::malformed;
  if (!is_ipv4() || load_be<6>(bytes.data()) != arp_kind) return Kind::foreign;
  const auto operation = static_cast<uint16_t>(load_be<2>(&bytes[6]));
  const Mac sender_mac = mac_at(&bytes[8]);
  const Eid sender = eid_of(bytes.subspan<14, 4>());
  const Eid target = eid_of(bytes.subspan<24, 4>());
  const bool asks_us = operation == arp_request && target == settings_.address;
  learn(sender, sender_mac, asks_us, now);
  if (asks_us && is_unicast(sender_mac)) send_arp(arp_reply, sender_mac, sender_mac, sender);
  return Kind::answered;
}

// Takes a frame with a correct IP header and without a datagram. It reads the headers again: if
// `take` passed them on, it would keep those of packets in memory.
Station::Kind Station::take_message(std::span<const std::byte> frame, Time now) {
  ArrivedEthernet ethernet;
  IpHeader ip;
  if (!parse_ethernet(frame, ethernet) || parse_ip(ethernet.type, frame, ip) != Flaw::none) {
    return Kind::malformed;
  }
  const Mac sender = mac_at(ethernet.from);
  if (ip.protocol == IpProtocol::icmpv6) return take_icmpv6(sender, ip, frame, now);
  const bool ours = !ethernet.to_group() && ip.to == settings_.address;
  return ours && ip.protocol == IpProtocol::icmp ? take_icmp(sender, ip, frame) : Kind::foreign;
}

Station::Kind Station::take_icmp(const Mac& sender, const IpHeader& ip,
                                 std::span<const std::byte> bytes) {
  if (bytes.size() < icmp_bytes) return Kind::malformed;
  if (InternetSum().add(bytes).folded() != 0xffff) return Kind::checksum;
  if (bytes[0] != echo_request || !is_host(ip.from)) return Kind::foreign;
  echo(sender, ip, bytes);
  return Kind::answered;
}

Station::Kind Station::take_icmpv6(const Mac& sender, const IpHeader& ip,
                                   std::span<const std::byte> bytes, Time now) {
  if (is_ipv4()) return Kind::foreign;
  if (bytes.size() < icmp_bytes) return Kind::malformed;
  if (ip.pseudo_sum().add(bytes).folded() != 0xffff) return Kind::checksum;
  const auto type = static_cast<uint8_t>(bytes[0]);
  if (type == solicitation || type == advertisement) {
    return take_neighbour(sender, ip, bytes, now);
  }
  if (bytes[0] != echo_request6 || ip.to != settings_.address || !is_host(ip.from)) {
    return Kind::foreign;
  }
  echo(sender, ip, bytes);
  return Kind::answered;
}

Station::Kind Station::take_neighbour(const Mac& sender, const IpHeader& ip,
                                      std::span<const std::byte> bytes, Time now) {
  if (bytes.size() < neighbour_bytes || ip.hops != link_hops || bytes[1] != std::byte{0}) {
    return Kind::malformed;
  }
  Eid target;
  std::copy_n(&bytes[8], 16, target.bytes.begin());
  const auto options = bytes.subspan(neighbour_bytes);
  const bool asks = bytes[0] == std::byte{solicitation};
  const std::byte* const stated = find_option(options, asks ? source_option : target_option);
  if (!asks) {
    if (stated != nullptr) learn(target, mac_at(stated), false, now);
    return Kind::answered;
  }
  if (target != settings_.address) return Kind::foreign;
  // A host that makes sure that no other has its address asks from the address of no host.
  const bool nameless = ip.from == Eid{};
  if (!nameless && stated != nullptr) learn(ip.from, mac_at(stated), true, now);
  const Eid to = nameless ? all_nodes() : ip.from;
  const Mac to_mac = nameless ? multicast_mac(to) : sender;
  send_neighbour(advertisement, to, to_mac, settings_.address,
                 static_cast<uint8_t>(override_flag | (nameless ? 0 : solicited_flag)));
  return Kind::answered;
}

// ---- messages

std::span<const std::byte> Station::message() const {
  if (message_count_ == 0) return {};
  return {&messages_[first_message_ * message_room_], message_bytes_[first_message_]};
}

void Station::pop_message() {
  first_message_ = (first_message_ + 1) % most_messages;
  --message_count_;
}

// Writes the Ethernet header of a message, and returns where the rest of the message goes. Returns
// null if too many messages wait, whose hosts then repeat their questions, or if it is too large.
std::byte* Station::begin_message(size_t bytes, const Mac& to, EtherType type) {
  const EthernetHeader header{
      .to = to, .from = settings_.mac, .vlan = settings_.vlan, .type = type};
  if (message_count_ == most_messages || bytes > settings_.ip_mtu) return nullptr;
  const size_t slot = (first_message_ + message_count_++) % most_messages;
  std::byte* const out = &messages_[slot * message_room_];
  message_bytes_[slot] = header.bytes() + bytes;
  header.emit(out);
  return out + header.bytes();
}

void Station::send_arp(uint16_t operation, const Mac& to, const Mac& target_mac,
                       const Eid& target) {
  std::byte* const out = begin_message(arp_bytes, to, EtherType::arp);
  if (out == nullptr) return;
  store_be<6>(out, arp_kind);
  store_be<2>(out + 6, operation);
  std::ranges::copy(settings_.mac, out + 8);
  std::copy_n(settings_.address.bytes.begin() + 12, 4, out + 14);
  std::ranges::copy(target_mac, out + 18);
  std::copy_n(target.bytes.begin() + 12, 4, out + 24);
}

void Station::send_neighbour(uint8_t type, const Eid& to, const Mac& to_mac, const Eid& target,
                             uint8_t flags) {
  const IpHeader ip{.from = settings_.address,
                    .to = to,
                    .payload_bytes = neighbour_bytes + option_bytes,
                    .protocol = IpProtocol::icmpv6,
                    .hops = link_hops};
  std::byte* out = begin_message(ip.bytes() + ip.payload_bytes, to_mac, EtherType::ipv6);
  if (out == nullptr) return;
  ip.emit(out);
  out += ip.bytes();
  std::fill_n(out, ip.payload_bytes, std::byte{0});
  out[0] = std::byte{type};
  out[4] = std::byte{flags};
  std::ranges::copy(target.bytes, out + 8);
  std::byte* const option = out + neighbour_bytes;
  option[0] = std::byte{type == solicitation ? source_option : target_option};
  option[1] = std::byte{1};  // in units of 8 bytes
  std::ranges::copy(settings_.mac, option + 2);
  const uint16_t checksum = ip.pseudo_sum().add({out, ip.payload_bytes}).checksum();
  std::memcpy(out + 2, &checksum, sizeof checksum);
}

void Station::ask(const Eid& ip) {
  if (is_ipv4()) return send_arp(arp_request, broadcast_mac, Mac{}, ip);
  const Eid group = solicited_node(ip);
  send_neighbour(solicitation, group, multicast_mac(group), ip, 0);
}

void Station::announce() {
  if (is_ipv4()) return send_arp(arp_request, broadcast_mac, Mac{}, settings_.address);
  const Eid all = all_nodes();
  send_neighbour(advertisement, all, multicast_mac(all), settings_.address, override_flag);
}

void Station::echo(const Mac& sender, const IpHeader& ip, std::span<const std::byte> bytes) {
  const IpHeader answer{.from = settings_.address,
                        .to = ip.from,
                        .payload_bytes = bytes.size(),
                        .protocol = ip.protocol};
  std::byte* out = begin_message(answer.bytes() + bytes.size(), sender,
                                 is_ipv4() ? EtherType::ipv4 : EtherType::ipv6);
  if (out == nullptr) return;
  answer.emit(out);
  out += answer.bytes();
  std::ranges::copy(bytes, out);
  out[0] = is_ipv4() ? echo_reply : echo_reply6;
  out[2] = out[3] = std::byte{0};
  const InternetSum start = is_ipv4() ? InternetSum() : answer.pseudo_sum();
  const uint16_t checksum = InternetSum(start).add({out, bytes.size()}).checksum();
  std::memcpy(out + 2, &checksum, sizeof checksum);
}

}  // namespace urma::drivers::dpdk
