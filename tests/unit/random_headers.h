// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/prng.h"
#include "wire/cetph.h"
#include "wire/link.h"
#include "wire/nth.h"
#include "wire/setup_message.h"
#include "wire/ta_chain.h"
#include "wire/tp_headers.h"

namespace urma::test {

// Headers in which every field may have any value that fits its width on the wire. The values at
// the ends of a field's range come often, because that is where a wrong width shows.

template <unsigned Bits>
uint64_t random_bits(Prng& prng) {
  constexpr uint64_t all = Bits == 64 ? ~uint64_t{0} : (uint64_t{1} << Bits % 64) - 1;
  switch (prng.below(8)) {
    case 0:
      return 0;
    case 1:
      return all;
    default:
      return prng.next() & all;
  }
}
inline uint8_t random8(Prng& prng) { return static_cast<uint8_t>(random_bits<8>(prng)); }
inline uint16_t random16(Prng& prng) { return static_cast<uint16_t>(random_bits<16>(prng)); }
inline uint32_t random24(Prng& prng) { return static_cast<uint32_t>(random_bits<24>(prng)); }
inline uint32_t random32(Prng& prng) { return static_cast<uint32_t>(random_bits<32>(prng)); }
inline uint64_t random64(Prng& prng) { return random_bits<64>(prng); }
inline uint32_t random_id(Prng& prng) { return static_cast<uint32_t>(random_bits<20>(prng)); }
inline bool coin(Prng& prng) { return prng.below(2) == 1; }
inline Eid random_eid(Prng& prng) {
  Eid eid;
  for (std::byte& byte : eid.bytes) byte = static_cast<std::byte>(random8(prng));
  return eid;
}

template <class Header>
Header random_header(Prng& prng);

template <>
inline Btah random_header(Prng& prng) {
  return {.opcode = random8(prng),
          .token_present = coin(prng),
          .target_present = coin(prng),
          .user_data = coin(prng),
          .tassn = random16(prng),
          .order = static_cast<Order>(prng.below(3)),
          .solicited = coin(prng),
          .retry = coin(prng),
          .allocate = coin(prng),
          .in_context = coin(prng),
          .rc_id = random_id(prng)};
}

template <>
inline Atah random_header(Prng& prng) {
  constexpr Response responses[] = {Response::success, Response::receiver_not_ready,
                                    Response::page_fault, Response::completer_error,
                                    Response::not_yet_placed};
  return {.opcode = random8(prng),
          .tassn = random16(prng),
          .status = responses[prng.below(std::size(responses))],
          .info = static_cast<uint8_t>(random_bits<5>(prng)),
          .rc_id = random_id(prng)};
}

template <>
inline Maetah random_header(Prng& prng) {
  return {.address = random64(prng), .token_id = random_id(prng), .length = random32(prng)};
}

template <>
inline Mtetah random_header(Prng& prng) {
  return {.target = static_cast<uint32_t>(random_bits<22>(prng)), .hint = random8(prng)};
}

template <>
inline Tvetah random_header(Prng& prng) {
  return {.token = random32(prng)};
}

template <>
inline Ofstetah random_header(Prng& prng) {
  return {.kib = random24(prng)};
}

template <>
inline Immetah random_header(Prng& prng) {
  return {.immediate = random64(prng), .token = random32(prng), .message_length = random32(prng)};
}

template <>
inline Udetah random_header(Prng& prng) {
  return {.update = static_cast<uint8_t>(random_bits<4>(prng))};
}

template <>
inline Ntfetah random_header(Prng& prng) {
  return {.address = random64(prng),
          .token_id = random_id(prng),
          .token = random32(prng),
          .value = random64(prng)};
}

template <>
inline Rtph random_header(Prng& prng) {
  return {.last = coin(prng),
          .opcode = static_cast<uint8_t>(random_bits<7>(prng)),
          .padding = static_cast<uint8_t>(random_bits<2>(prng)),
          .next = static_cast<NextHeader>(prng.below(2)),
          .source = random24(prng),
          .destination = random24(prng),
          .ack_request = coin(prng),
          .fake = coin(prng),
          .psn = random24(prng),
          .status = static_cast<uint8_t>(random_bits<3>(prng)),
          .info = static_cast<uint8_t>(random_bits<5>(prng)),
          .tpmsn = random24(prng)};
}

template <>
inline Utph random_header(Prng& prng) {
  return {.padding = static_cast<uint8_t>(random_bits<2>(prng)),
          .next = static_cast<NextHeader>(prng.below(2))};
}

template <>
inline Addresses random_header(Prng& prng) {
  return {.upi = random24(prng), .source = random_eid(prng), .destination = random_eid(prng)};
}

template <>
inline Saetph random_header(Prng& prng) {
  Saetph out{.max_received = random24(prng), .bit_count = 64u << prng.below(5), .bits = {}};
  for (uint32_t word = 0; word < out.bit_count / 64; ++word) out.bits[word] = random64(prng);
  return out;
}

template <>
inline LdcpCetph random_header(Prng& prng) {
  return {.ack_seq = ByteCount(random32(prng)), .ce_seq = ByteCount(random32(prng))};
}

template <>
inline CaqmCetph random_header(Prng& prng) {
  return {.ack_seq = ByteCount(random32(prng)),
          .last_hop = coin(prng),
          .increase = coin(prng),
          .marked = random8(prng),
          .hint = random16(prng)};
}

template <>
inline RateCetph random_header(Prng& prng) {
  return {.ack_seq = ByteCount(random32(prng)),
          .switch_queue = static_cast<uint8_t>(random_bits<6>(prng)),
          .last_hop = coin(prng),
          .increase = coin(prng),
          .marked = random8(prng),
          .switched = coin(prng),
          .hint = static_cast<uint16_t>(random_bits<15>(prng))};
}

template <>
inline CnpCetph random_header(Prng& prng) {
  return {.congestion = static_cast<CnpCetph::Congestion>(random_bits<2>(prng)),
          .last_hop = coin(prng)};
}

template <>
inline CaqmCci random_header(Prng& prng) {
  return {.last_hop = coin(prng),
          .switched = coin(prng),
          .enabled = coin(prng),
          .congested = coin(prng),
          .increase = coin(prng),
          .hint = random8(prng)};
}

template <>
inline FecnRttCci random_header(Prng& prng) {
  return {.last_hop = coin(prng),
          .timestamp = static_cast<uint16_t>(random_bits<10>(prng)),
          .fecn = static_cast<Fecn>(random_bits<2>(prng))};
}

template <>
inline FecnCci random_header(Prng& prng) {
  return {.last_hop = coin(prng), .fecn = static_cast<Fecn>(random_bits<2>(prng))};
}

template <>
inline Cna16Nth random_header(Prng& prng) {
  return {.source = random16(prng),
          .destination = random16(prng),
          .cci = random16(prng),
          .lbf = random8(prng),
          .service_level = static_cast<uint8_t>(random_bits<4>(prng)),
          .management = coin(prng),
          .next = static_cast<uint8_t>(random_bits<3>(prng))};
}

template <>
inline Cna24Nth random_header(Prng& prng) {
  return {.source = random24(prng),
          .destination = random24(prng),
          .cci = random16(prng),
          .lbf = random8(prng),
          .service_level = static_cast<uint8_t>(random_bits<4>(prng)),
          .next = static_cast<uint8_t>(random_bits<3>(prng))};
}

template <>
inline LinkWord random_header(Prng& prng) {
  return {.form = prng.chance(0.5) ? LinkForm::control : LinkForm::cna24,
          .shortest = prng.chance(0.5),
          .per_packet = prng.chance(0.5),
          .hops = random8(prng),
          .switch_queue = static_cast<uint8_t>(random_bits<6>(prng))};
}

template <>
inline LinkControl random_header(Prng& prng) {
  return {.type = static_cast<LinkMessage>(random8(prng)),
          .cna = random24(prng),
          .rated = coin(prng),
          .refusal = static_cast<LinkRefusal>(random_bits<7>(prng)),
          .mtu_log2 = random8(prng),
          .lease_ms = random16(prng),
          .nonce = random64(prng),
          .cookie = random64(prng),
          .crc = random32(prng)};
}

template <>
inline IpNth random_header(Prng& prng) {
  return {.cci = random16(prng),
          .switch_queue = static_cast<uint8_t>(random_bits<6>(prng)),
          .permission = coin(prng),
          .partition = random24(prng)};
}

template <>
inline SetupMessage random_header(Prng& prng) {
  return {.type = static_cast<SetupType>(prng.between(1, 7)),
          .version = random8(prng),
          .reason = static_cast<SetupReason>(prng.below(5)),
          .mtu_log2 = random8(prng),
          .features = random32(prng),
          .from_life = random64(prng),
          .to_life = random64(prng),
          .from_tpn = random32(prng),
          .to_tpn = random32(prng),
          .first_psn = random32(prng),
          .attempt = random32(prng),
          .receive_window = random16(prng),
          .tassn_window = random16(prng),
          .atomic_results = random16(prng),
          .reads = random16(prng),
          .buffer_bytes = random32(prng),
          .echoed_psn = random32(prng),
          .cookie = random64(prng)};
}

}  // namespace urma::test
