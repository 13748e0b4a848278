// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "wire/layout.h"

namespace urma {

// NTH, the header of the network layer on UB links (UB 5, App B), in the order of the network. The
// link's header in front of it says which of the formats it has; UB over Ethernet has none. `cci`
// is taken apart in wire/cci.h. A switch edits the two bytes at `cci_at`, and spreads packets by
// `lbf`: neither is covered by the ICRC.

inline constexpr uint8_t most_service_level = 15;

// With addresses of 16 bits (CFG 6 of the link's header).
struct Cna16Nth {
  static constexpr size_t size = 8;
  static constexpr size_t cci_at = 4;
  static constexpr uint8_t next_ctp = 2;

  uint16_t source = 0;       // SCNA
  uint16_t destination = 0;  // DCNA
  uint16_t cci = 0;
  uint8_t lbf = 0;            // load-balance factor: names the flow to switches that spread flows
  uint8_t service_level = 0;  // SL, 4 bits: chooses the virtual lane
  bool management = false;    // Mgmt
  uint8_t next = next_ctp;    // NLP, 3 bits

  using Layout =
      HeaderLayout<size, Member<&Cna16Nth::source, 0, 16>, Member<&Cna16Nth::destination, 16, 16>,
                   Member<&Cna16Nth::cci, 32, 16>, Member<&Cna16Nth::lbf, 48, 8>,
                   Member<&Cna16Nth::service_level, 56, 4>, Member<&Cna16Nth::management, 60, 1>,
                   Member<&Cna16Nth::next, 61, 3>>;

  static Cna16Nth parse(HeaderView<size> in) { return read_header<Cna16Nth>(in); }
  void emit(HeaderBytes<size> out) const { Layout::write(*this, out); }
  friend bool operator==(const Cna16Nth&, const Cna16Nth&) = default;
};

// With addresses of 24 bits (CFG 7).
struct Cna24Nth {
  static constexpr size_t size = 10;
  static constexpr size_t cci_at = 6;
  static constexpr uint8_t next_ctp = 0;
  static constexpr uint8_t next_rtp = 2;

  uint32_t source = 0;       // SCNA
  uint32_t destination = 0;  // DCNA
  uint16_t cci = 0;
  uint8_t lbf = 0;            // as in Cna16Nth
  uint8_t service_level = 0;  // SL
  uint8_t next = next_rtp;    // NLP, 3 bits

  using Layout =
      HeaderLayout<size, Member<&Cna24Nth::source, 0, 24>, Member<&Cna24Nth::destination, 24, 24>,
                   Member<&Cna24Nth::cci, 48, 16>, Member<&Cna24Nth::lbf, 64, 8>,
                   Member<&Cna24Nth::service_level, 72, 4>, Member<&Cna24Nth::next, 77, 3>>;

  static Cna24Nth parse(HeaderView<size> in) { return read_header<Cna24Nth>(in); }
  void emit(HeaderBytes<size> out) const { Layout::write(*this, out); }
  friend bool operator==(const Cna24Nth&, const Cna24Nth&) = default;
};

// In front of an IP header (CFG 3 and 4), which has the addresses. The UDP source port is the LBF.
struct IpNth {
  static constexpr size_t size = 6;
  static constexpr size_t cci_at = 0;

  uint16_t cci = 0;
  // UBQ (OURS, docs/protocol.md), 6 bits: the log code of the time that the packet has waited in
  // switches that take part in C-AQM. It lies in reserved bits (INFERRED: seven), and means
  // something only to ends that have agreed on it.
  uint8_t switch_queue = 0;
  bool permission = false;  // NPI's first bit
  uint32_t partition = 0;   // NPI's other 24 bits

  using Layout = HeaderLayout<size, Member<&IpNth::cci, 0, 16>, Member<&IpNth::switch_queue, 17, 6>,
                              Member<&IpNth::permission, 23, 1>, Member<&IpNth::partition, 24, 24>>;

  static IpNth parse(HeaderView<size> in) { return read_header<IpNth>(in); }
  void emit(HeaderBytes<size> out) const { Layout::write(*this, out); }
  friend bool operator==(const IpNth&, const IpNth&) = default;
};

}  // namespace urma
