// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string_view>

#include "base/crc32.h"
#include "congestion/signal.h"
#include "urma/core/endpoint.h"
#include "wire/nth.h"

namespace urma {

// Datagrams between a device and a switch, which carry packets as they are on UB's own links (OURS,
// docs/protocol.md, section 17). A word with the form of LPH comes first; its CFG says what
// follows:
//   LinkWord | Cna24Nth | RTPH or UTPH ... | ICRC      a packet
//   LinkWord | LinkControl                             a message by which a device attaches

inline constexpr uint16_t link_port = 4794;  // of UDP, unless a switch listens at another one
// Parses the address of a switch: ADDRESS or ADDRESS:PORT, with IPv6 in brackets. Without a port,
// the result has `link_port`. Errors: invalid_argument.
inline Result<Endpoint> parse_switch_endpoint(std::string_view text) {
  Result<Endpoint> at = parse_endpoint(text);
  if (!at) return at;
  const bool has_port = text.find(at->is_ipv4() ? ":" : "]:") != text.npos;
  if (!has_port) at->port = link_port;
  return at;
}

enum class LinkForm : uint8_t { control = 0, cna24 = 7 };  // CFG; the others are not used

// The first four bytes of each datagram, in place of an LPH: which kind of datagram it is, and, for
// a packet, what switches do with it and note in it.
struct LinkWord {
  static constexpr size_t size = 4;
  static constexpr uint8_t version = 1;

  LinkForm form = LinkForm::cna24;
  bool shortest = false;     // RT, bit 1: shortest paths only
  bool per_packet = false;   // RT, bit 0: packets of a flow may take different paths
  uint8_t hops = 0;          // how many switches have forwarded the packet
  uint8_t switch_queue = 0;  // UBQ, 6 bits: as in IpNth

  using Layout =
      HeaderLayout<size, Member<&LinkWord::form, 0, 4>, Member<&LinkWord::shortest, 4, 1>,
                   Member<&LinkWord::per_packet, 5, 1>, Required<8, 8, version>,
                   Member<&LinkWord::hops, 16, 8>, Member<&LinkWord::switch_queue, 24, 6>>;

  static std::optional<LinkWord> parse(HeaderView<size> in) { return parse_header<LinkWord>(in); }
  void emit(HeaderBytes<size> out) const { Layout::write(*this, out); }
  friend bool operator==(const LinkWord&, const LinkWord&) = default;
};

enum class LinkMessage : uint8_t {
  attach = 1,     // device: asks for its CNA, and repeats this before its lease ends
  challenge = 2,  // switch: the device has to repeat this cookie, which proves its address
  attached = 3,   // switch: the device has this CNA
  refused = 4,    // switch
  detach = 5,     // device: gives its CNA back
  unknown = 6,    // switch: the sender of a packet is not attached
};

enum class LinkRefusal : uint8_t {
  none = 0,
  taken = 1,      // another device has the CNA
  no_port = 2,    // all ports, or all CNAs, are in use
  elsewhere = 3,  // the CNA belongs to devices of another switch
};

// A message between a device and the switch to which it attaches. A device proves by a cookie that
// it receives at the address from which it sends.
struct LinkControl {
  static constexpr size_t size = 28;

  LinkMessage type = LinkMessage::attach;
  uint32_t cna = 0;    // 24 bits. attach: 0 asks for any
  bool rated = false;  // attach: the device reads the rate of its port. attached: `cookie` has it
  LinkRefusal refusal = LinkRefusal::none;
  uint8_t mtu_log2 = 0;   // the largest payload that the sender of the message can carry
  uint16_t lease_ms = 0;  // attached: the device has the CNA for so long
  uint64_t nonce = 0;     // of the device; the switch repeats it, except in `unknown`
  // challenge: a number that the switch has chosen. attach: the same number, by which the device
  // proves that it receives at its address. attached: facts of the device's port, as
  // `metering_of` and `rate_of` read them.
  uint64_t cookie = 0;
  uint32_t crc = 0;  // of all before it; `control_datagram` sets it

  using Layout =
      HeaderLayout<size, Member<&LinkControl::type, 0, 8>, Member<&LinkControl::cna, 8, 24>,
                   Member<&LinkControl::rated, 32, 1>, Member<&LinkControl::refusal, 33, 7>,
                   Member<&LinkControl::mtu_log2, 40, 8>, Member<&LinkControl::lease_ms, 48, 16>,
                   Member<&LinkControl::nonce, 64, 64>, Member<&LinkControl::cookie, 128, 64>,
                   Member<&LinkControl::crc, 192, 32>>;

  static LinkControl parse(HeaderView<size> in) { return read_header<LinkControl>(in); }
  void emit(HeaderBytes<size> out) const { Layout::write(*this, out); }
  friend bool operator==(const LinkControl&, const LinkControl&) = default;
};

// An `attached` message needs no cookie. There it is the number of a Metering: how the ports of the
// switch read hints. A switch that does not say it sends 0, `unknown`.
inline uint64_t cookie_of(congestion::Metering metering) { return number(metering); }
// Puts the rate of the device's port above that number, for a device that has asked for it: others
// would take both together for one large number. 0: the switch does not limit the rate.
inline constexpr unsigned link_rate_shift = 8;
inline void add_rate(LinkControl& attached, uint64_t bytes_per_second) {
  attached.rated = true;
  attached.cookie |= std::min(bytes_per_second, UINT64_MAX >> link_rate_shift) << link_rate_shift;
}
// The inverse of add_rate. Returns 0 if the rate is not known.
inline uint64_t rate_of(const LinkControl& attached) {
  return attached.rated ? attached.cookie >> link_rate_shift : 0;
}
// The inverse of cookie_of. A number that this version does not know is another way to read hints.
inline congestion::Metering metering_of(const LinkControl& attached) {
  constexpr uint64_t below_rate = (1 << link_rate_shift) - 1;
  const uint64_t metering = attached.rated ? attached.cookie & below_rate : attached.cookie;
  const bool known = metering <= number(congestion::Metering::rates);
  return known ? static_cast<congestion::Metering>(metering) : congestion::Metering::other;
}

// ---- whole datagrams

inline constexpr size_t link_head_bytes = LinkWord::size + Cna24Nth::size;
inline constexpr size_t link_control_bytes = LinkWord::size + LinkControl::size;

// A packet in its datagram.
struct LinkPacket {
  LinkWord word;
  Cna24Nth nth;
  std::span<const std::byte> packet;  // from its transport header on
};

// Returns nothing if the datagram has something else than a packet of RTP or UTP.
inline std::optional<LinkPacket> parse_link_packet(std::span<const std::byte> datagram) {
  if (datagram.size() <= link_head_bytes) return std::nullopt;
  const auto word = LinkWord::parse(datagram.first<LinkWord::size>());
  if (!word || word->form != LinkForm::cna24) return std::nullopt;
  const Cna24Nth nth = Cna24Nth::parse(datagram.subspan<LinkWord::size, Cna24Nth::size>());
  if (nth.next != Cna24Nth::next_rtp) return std::nullopt;
  return LinkPacket{*word, nth, datagram.subspan(link_head_bytes)};
}

// Writes what the switches on the way may change, into the datagram of a packet.
inline void edit_link_packet(std::span<std::byte> datagram, const LinkWord& word, uint16_t cci) {
  word.emit(datagram.first<LinkWord::size>());
  store_be<2>(datagram.data() + LinkWord::size + Cna24Nth::cci_at, cci);
}

using LinkControlBytes = std::array<std::byte, link_control_bytes>;

inline LinkControlBytes control_datagram(LinkControl control) {
  LinkControlBytes out;
  const std::span<std::byte> all(out);
  LinkWord{.form = LinkForm::control}.emit(all.first<LinkWord::size>());
  control.emit(all.subspan<LinkWord::size, LinkControl::size>());
  constexpr size_t covered = link_control_bytes - sizeof control.crc;
  control.crc = crc32_finish(crc32_update(crc32_start, out.data(), covered));
  control.emit(all.subspan<LinkWord::size, LinkControl::size>());
  return out;
}

// Returns nothing if the datagram is not such a message, or was damaged.
inline std::optional<LinkControl> parse_link_control(std::span<const std::byte> datagram) {
  if (datagram.size() != link_control_bytes) return std::nullopt;
  const auto word = LinkWord::parse(datagram.first<LinkWord::size>());
  if (!word || word->form != LinkForm::control) return std::nullopt;
  const auto control = LinkControl::parse(datagram.subspan<LinkWord::size, LinkControl::size>());
  const LinkControlBytes again = control_datagram(control);
  constexpr size_t crc_at = link_control_bytes - sizeof control.crc;
  const bool whole = std::equal(again.begin() + crc_at, again.end(), datagram.begin() + crc_at);
  return whole ? std::optional(control) : std::nullopt;
}

}  // namespace urma
