// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "urma/core/ids.h"
#include "wire/cci.h"
#include "wire/tp_headers.h"

namespace urma {

// CETPH: the receiver of data reports congestion to its sender (UB 6.6, App B). It follows the RTPH
// of a TPACK-CC, stands between RTPH and SAETPH of a TPSACK-CC, and is all of a CNP. The first two
// have one of three forms. No packet names its form: set-up agrees on one for each direction.

// Returns the size of the CETPH that a packet with this TPOpcode has.
constexpr size_t cetph_size(uint8_t opcode) {
  switch (static_cast<TpOpcode>(opcode)) {
    case TpOpcode::ack_cc:
    case TpOpcode::selective_ack_cc:
      return 8;
    case TpOpcode::congestion:
      return 16;
    default:
      return 0;
  }
}

// The ways in which a receiver can report, each for the senders that react to it. The numbers are
// those of set-up messages (OURS).
enum class ReportForm : uint8_t {
  none = 0,  // the sender reacts to loss alone
  ldcp = 1,  // LdcpCetph
  cnp = 2,   // CnpCetph, in packets of their own; TPACK and TPSACK have no CETPH
  caqm = 3,  // CaqmCetph
  rate = 4,  // RateCetph
};

// A set of forms, as set-up messages have it (OURS).
struct ReportForms {
  uint8_t bits = 0;  // bit n - 1 stands for form n

  constexpr bool contain(ReportForm form) const {
    return form != ReportForm::none && (bits >> (number(form) - 1) & 1) != 0;
  }
  // `form` must not be none.
  constexpr ReportForms with(ReportForm form) const {
    return {static_cast<uint8_t>(bits | 1u << (number(form) - 1))};
  }
  friend bool operator==(const ReportForms&, const ReportForms&) = default;
};

// Ack_Seq and Ce_Seq: how many bytes have arrived on the channel, in units of 2 bytes, modulo 2^32.
// Each packet counts from its transport header to its ICRC, rounded up to whole units.
class ByteCount {
 public:
  static constexpr uint32_t unit_bytes = 2;

  constexpr ByteCount() = default;
  explicit constexpr ByteCount(uint64_t units) : units_(static_cast<uint32_t>(units)) {}
  explicit constexpr operator uint64_t() const { return units_; }

  constexpr void add_packet(uint32_t bytes) { units_ += bytes / unit_bytes + bytes % unit_bytes; }

  // Returns the bytes from `earlier` to `later`; a negative number if they are in the other order,
  // as when an acknowledgement was overtaken. The two must be less than 4 GiB apart.
  friend constexpr int64_t operator-(ByteCount later, ByteCount earlier) {
    return int64_t{static_cast<int32_t>(later.units_ - earlier.units_)} * unit_bytes;
  }
  friend constexpr bool operator==(ByteCount, ByteCount) = default;

 private:
  uint32_t units_ = 0;
};

// LDCP. Both counts are cumulative, so a lost acknowledgement loses nothing.
struct LdcpCetph {
  static constexpr size_t size = 8;

  ByteCount ack_seq{};  // of all packets
  ByteCount ce_seq{};   // of those that were marked

  using Layout =
      HeaderLayout<size, Member<&LdcpCetph::ack_seq, 0, 32>, Member<&LdcpCetph::ce_seq, 32, 32>>;

  static LdcpCetph parse(HeaderView<size> in) { return read_header<LdcpCetph>(in); }
  void emit(HeaderBytes<size> out) const { Layout::write(*this, out); }
  friend bool operator==(const LdcpCetph&, const LdcpCetph&) = default;
};

// C-AQM. All but Ack_Seq is about the packets since the last acknowledgement (UB 6.6.1). Sums must
// stay at the largest value of their field: a sum of marks that wraps would deny congestion. UBQ
// lies in reserved bits (OURS, docs/protocol.md).
struct CaqmCetph {
  static constexpr size_t size = 8;

  ByteCount ack_seq{};
  // UBQ, 6 bits: the largest, at least 1 if a switch took part in C-AQM; 0 if none did.
  uint8_t switch_queue = 0;
  bool last_hop = false;  // Loc
  bool increase = false;  // I
  uint8_t marked = 0;     // C: the number of packets with C
  uint16_t hint = 0;      // the sum of the Hints of packets with I and without C

  using Layout =
      HeaderLayout<size, Member<&CaqmCetph::ack_seq, 0, 32>,
                   Member<&CaqmCetph::switch_queue, 32, 6>, Member<&CaqmCetph::last_hop, 38, 1>,
                   Member<&CaqmCetph::increase, 39, 1>, Member<&CaqmCetph::marked, 40, 8>,
                   Member<&CaqmCetph::hint, 48, 16>>;

  static CaqmCetph parse(HeaderView<size> in) { return read_header<CaqmCetph>(in); }
  void emit(HeaderBytes<size> out) const { Layout::write(*this, out); }
  friend bool operator==(const CaqmCetph&, const CaqmCetph&) = default;
};

// The explicit rate (OURS, docs/protocol.md): as C-AQM, but UBQ lies in its reserved bits, and S in
// the first bit of its Hint.
struct RateCetph {
  static constexpr size_t size = 8;

  ByteCount ack_seq{};
  uint8_t switch_queue = 0;  // UBQ, 6 bits: the largest
  bool last_hop = false;     // Loc
  bool increase = false;     // I
  uint8_t marked = 0;        // the number of packets that were marked, by C or by ECN
  bool switched = false;     // S
  // Without marks, the sum of what was granted, in units of 32 bytes, at most 0x7fff. With marks,
  // see `marked_hint`.
  uint16_t hint = 0;

  using Layout =
      HeaderLayout<size, Member<&RateCetph::ack_seq, 0, 32>,
                   Member<&RateCetph::switch_queue, 32, 6>, Member<&RateCetph::last_hop, 38, 1>,
                   Member<&RateCetph::increase, 39, 1>, Member<&RateCetph::marked, 40, 8>,
                   Member<&RateCetph::switched, 48, 1>, SaturatingMember<&RateCetph::hint, 49, 15>>;

  // Returns the Hint of a report with marks: the least rate code of the packets with C, 0 if there
  // are none, and how many packets had a mark of ECN, at most 127.
  static constexpr uint16_t marked_hint(uint8_t rate_code, unsigned ecn_marks) {
    return static_cast<uint16_t>(std::min(ecn_marks, 127u) << 8 | rate_code);
  }
  uint8_t rate_code() const { return static_cast<uint8_t>(hint); }
  unsigned ecn_marks() const { return hint >> 8; }

  static RateCetph parse(HeaderView<size> in) { return read_header<RateCetph>(in); }
  void emit(HeaderBytes<size> out) const { Layout::write(*this, out); }
  friend bool operator==(const RateCetph&, const RateCetph&) = default;
};

// The whole of a CNP behind its RTPH.
struct CnpCetph {
  static constexpr size_t size = 16;

  enum class Congestion : uint8_t { none = 0, minor = 1, severe = 3 };
  Congestion congestion = Congestion::none;  // ECN
  bool last_hop = false;                     // Loc

  using Layout =
      HeaderLayout<size, Member<&CnpCetph::congestion, 0, 2>, Member<&CnpCetph::last_hop, 2, 1>>;

  static CnpCetph parse(HeaderView<size> in) { return read_header<CnpCetph>(in); }
  void emit(HeaderBytes<size> out) const { Layout::write(*this, out); }
  friend bool operator==(const CnpCetph&, const CnpCetph&) = default;
};

}  // namespace urma
