// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "urma/core/ids.h"
#include "wire/layout.h"

namespace urma {

// The transport layer's headers (UB 4.2, 3.4), as ta_headers.h has those of the transaction layer.

inline constexpr uint64_t tp_version = 0;

// UB 4.2.2
enum class TpOpcode : uint8_t {
  unreliable = 0,  // UTPH
  data = 1,
  ack = 2,  // TPACK, or TPNAK by its status
  ack_cc = 3,
  selective_ack = 5,
  selective_ack_cc = 6,
  congestion = 8,  // CNP
};

// The header that follows the transport header (UB 3.4).
enum class NextHeader : uint8_t { transaction = 0, full_addresses = 1 };

// RTPH.RSPST (UB 4.2.3). Its other values are transaction statuses that ride on an acknowledgement.
enum class TpStatus : uint8_t { ok = 0, completer_error = 3 };
inline constexpr uint8_t psn_error = 0;  // RSPINFO of a TPNAK

// UB 4.2.1
struct Rtph {
  static constexpr size_t size = 16;

  bool last = false;    // the last packet of its slice
  uint8_t opcode = 0;   // a TpOpcode
  uint8_t padding = 0;  // bytes of padding before the ICRC
  NextHeader next = NextHeader::transaction;
  uint32_t source = 0;       // TPN
  uint32_t destination = 0;  // TPN
  bool ack_request = false;  // UB 4.2.9
  bool fake = false;         // UB 4.2.8: the packet carries no work: keep-alive or filler
  uint32_t psn = 0;
  uint8_t status = 0;  // a TpStatus
  uint8_t info = 0;
  uint32_t tpmsn = 0;  // which slice; 0 in acknowledgements (OURS, docs/protocol.md)

  using Layout = HeaderLayout<
      size, Member<&Rtph::last, 0, 1>, Member<&Rtph::opcode, 1, 7>, Required<8, 2, tp_version>,
      Member<&Rtph::padding, 10, 2>, Member<&Rtph::next, 12, 4>, Member<&Rtph::source, 16, 24>,
      Member<&Rtph::destination, 40, 24>, Member<&Rtph::ack_request, 64, 1>,
      Member<&Rtph::fake, 65, 1>, Member<&Rtph::psn, 72, 24>, Member<&Rtph::status, 96, 3>,
      Member<&Rtph::info, 99, 5>, Member<&Rtph::tpmsn, 104, 24>>;

  // Returns nothing if the version is not 0.
  static std::optional<Rtph> parse(HeaderView<size> in) { return parse_header<Rtph>(in); }
  void emit(HeaderBytes<size> out) const { Layout::write(*this, out); }
  friend bool operator==(const Rtph&, const Rtph&) = default;
};

// UB 4.2.5
struct Utph {
  static constexpr size_t size = 16;

  uint8_t padding = 0;
  NextHeader next = NextHeader::full_addresses;

  using Layout =
      HeaderLayout<size, Required<0, 8, number(TpOpcode::unreliable)>, Required<8, 2, tp_version>,
                   Member<&Utph::padding, 10, 2>, Member<&Utph::next, 12, 4>>;

  // Returns nothing if the opcode is not `unreliable`, or the version not 0.
  static std::optional<Utph> parse(HeaderView<size> in) { return parse_header<Utph>(in); }
  void emit(HeaderBytes<size> out) const { Layout::write(*this, out); }
  friend bool operator==(const Utph&, const Utph&) = default;
};

// The compact transport's header (UB 4.2.5, 6.2), for a medium that loses nothing and keeps the
// order: no TPN, no PSN, and one packet for each slice, never padded.
struct Ctph {
  static constexpr size_t size = 1;

  enum class Opcode : uint8_t {
    packet = 0,
    congestion = 1,
    filler = 2,  // OURS: with the BTAH of a withdrawn slice; alone, it asks for a sign of life
  };
  Opcode opcode = Opcode::packet;
  NextHeader next = NextHeader::transaction;

  using Layout =
      HeaderLayout<size, Member<&Ctph::opcode, 0, 2>, Required<2, 2, 0>, Member<&Ctph::next, 4, 4>>;

  // Returns nothing if the packet is padded, or has another opcode.
  static std::optional<Ctph> parse(HeaderView<size> in) {
    std::optional<Ctph> header = parse_header<Ctph>(in);
    if (header && header->opcode > Opcode::filler) header.reset();
    return header;
  }
  void emit(HeaderBytes<size> out) const { Layout::write(*this, out); }
  friend bool operator==(const Ctph&, const Ctph&) = default;
};

// UPIH32 followed by EIDH256 (NLP 1).
struct Addresses {
  static constexpr size_t size = 4 + 32;
  static constexpr uint32_t default_upi = 1;

  uint32_t upi = default_upi;  // 24 bits: the partition
  Eid source;
  Eid destination;

  using Layout =
      HeaderLayout<size, Member<&Addresses::upi, 8, 24>, AddressMember<&Addresses::source, 4>,
                   AddressMember<&Addresses::destination, 20>>;

  static Addresses parse(HeaderView<size> in) { return read_header<Addresses>(in); }
  void emit(HeaderBytes<size> out) const { Layout::write(*this, out); }
  friend bool operator==(const Addresses&, const Addresses&) = default;
};

// The packets beyond the highest in-order one that have been received (UB 4.2.7). Bit i stands for
// RTPH.PSN + i, least significant bit of the first byte first (INFERRED, docs/protocol.md).
struct Saetph {
  static constexpr size_t fixed_size = 4;  // in front of the bitmap
  static constexpr size_t max_bits = 1024;
  static constexpr size_t max_size = fixed_size + max_bits / 8;

  uint32_t max_received = 0;  // PSN, 24 bits
  uint32_t bit_count = 64;    // 64 << n, up to max_bits
  std::array<uint64_t, max_bits / 64> bits{};

  bool bit(uint32_t i) const { return bits[i / 64] >> i % 64 & 1; }
  void set_bit(uint32_t i) { bits[i / 64] |= uint64_t{1} << i % 64; }
  size_t size() const { return fixed_size + bit_count / 8; }

  // Returns nothing if the bitmap's size is undefined, or `in` is shorter than it.
  static std::optional<Saetph> parse(std::span<const std::byte> in);
  // Returns the bytes written; `out` holds size() bytes.
  size_t emit(std::span<std::byte> out) const;
  friend bool operator==(const Saetph&, const Saetph&) = default;
};

}  // namespace urma
