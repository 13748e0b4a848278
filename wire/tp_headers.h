#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "base/bits.h"
#include "urma/core/ids.h"

namespace urma::transport {

// The transport layer's headers (UB 4.2, 3.4), one struct each; `parse` and `emit` are inverse.

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

// What follows the transport header (UB 3.4).
enum class NextHeader : uint8_t { transaction = 0, full_addresses = 1 };

// RTPH.RSPST (UB 4.2.3); the others are transaction statuses that ride on an ack.
enum class TpStatus : uint8_t { ok = 0, completer_error = 3 };
inline constexpr uint8_t psn_error = 0;  // RSPINFO of a TPNAK

// UB 4.2.1
struct Rtph {
  static constexpr size_t size = 16;

  bool last = false;  // of its slice
  uint8_t opcode = 0;
  uint8_t padding = 0;
  NextHeader next = NextHeader::transaction;
  uint32_t source = 0;       // TPN
  uint32_t destination = 0;  // TPN
  bool ack_request = false;  // UB 4.2.9
  bool fake = false;         // UB 4.2.8: carries no work: keep-alive or filler
  uint32_t psn = 0;
  uint8_t status = 0;
  uint8_t info = 0;
  uint32_t tpmsn = 0;

  static std::optional<Rtph> parse(HeaderView<size> in);  // nothing: not version 0
  void emit(HeaderBytes<size> out) const;
  friend bool operator==(const Rtph&, const Rtph&) = default;
};

// UB 4.2.5, as is Ctph.
struct Utph {
  static constexpr size_t size = 16;

  uint8_t padding = 0;
  NextHeader next = NextHeader::full_addresses;

  static std::optional<Utph> parse(HeaderView<size> in);  // nothing: not opcode 0, version 0
  void emit(HeaderBytes<size> out) const;
  friend bool operator==(const Utph&, const Utph&) = default;
};

// Where nothing is lost and order is kept (UB 6.2: compact transport): no TPN, no PSN, one packet
// for each slice.
struct Ctph {
  static constexpr size_t size = 1;

  enum class Opcode : uint8_t {
    packet = 0,
    congestion = 1,
    filler = 2,  // OURS: a withdrawn slice's BTAH, or nothing: a sign of life is asked for
  };
  Opcode opcode = Opcode::packet;
  NextHeader next = NextHeader::transaction;

  static std::optional<Ctph> parse(HeaderView<size> in);  // nothing: padded, or another opcode
  void emit(HeaderBytes<size> out) const;
  friend bool operator==(const Ctph&, const Ctph&) = default;
};

// UPIH32 followed by EIDH256 (NLP 1).
struct Addresses {
  static constexpr size_t size = 4 + 32;
  static constexpr uint32_t default_upi = 1;

  uint32_t upi = default_upi;  // 24 bits: the partition
  Eid source;
  Eid destination;

  static Addresses parse(HeaderView<size> in);
  void emit(HeaderBytes<size> out) const;
  friend bool operator==(const Addresses&, const Addresses&) = default;
};

// Which packets beyond the highest in-order one have come (UB 4.2.7). Bit i stands for
// RTPH.PSN + i, least significant bit of the first byte first (INFERRED, docs/protocol.md).
struct Saetph {
  static constexpr size_t fixed_size = 4;
  static constexpr size_t max_bits = 1024;
  static constexpr size_t max_size = fixed_size + max_bits / 8;

  uint32_t max_received = 0;  // PSN, 24 bits
  uint32_t bit_count = 64;    // 64 << n, up to max_bits
  std::array<uint64_t, max_bits / 64> bits{};

  bool bit(uint32_t i) const { return bits[i / 64] >> i % 64 & 1; }
  void set_bit(uint32_t i) { bits[i / 64] |= uint64_t{1} << i % 64; }
  size_t size() const { return fixed_size + bit_count / 8; }

  // Nothing: an undefined bitmap size, or fewer bytes than it needs.
  static std::optional<Saetph> parse(std::span<const std::byte> in);
  // Returns the bytes written; `out` holds size() bytes.
  size_t emit(std::span<std::byte> out) const;
  friend bool operator==(const Saetph&, const Saetph&) = default;
};

}  // namespace urma::transport
