// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "urma/core/ids.h"
#include "urma/core/order.h"
#include "wire/layout.h"
#include "wire/opcode.h"

namespace urma {

// The transaction layer's headers (UB 7, appendix B). Each struct holds what one header says, and
// its Layout says in which bits. `parse` and `emit` are inverse. Fields of the specification that
// liburma neither uses nor understands are not named: they are sent as zero and ignored when
// received. All functions are inline, because a chain whose opcode is known takes only a few
// instructions.

inline constexpr uint64_t ta_version = 0;

// The header with which each request begins.
struct Btah {
  static constexpr size_t size = 8;

  uint8_t opcode = 0;
  bool token_present = false;   // TV_EN: TVETAH follows
  bool target_present = false;  // MT_EN: MTETAH follows
  bool user_data = false;       // UD_Flag: UDETAH follows
  uint32_t tassn = 0;           // 16 bits
  Order order = Order::none;    // ODR, without ODR[2]: completion order at the target
  bool solicited = false;       // FCE: raise a completion event at the target
  bool retry = false;           // the same TASSN has been sent before
  bool allocate = false;    // Alloc: keep a sequence context; no earlier ordered slice will follow
  bool in_context = false;  // INI_RC_Type 10: the queue's sequence context keeps its order
  uint32_t rc_id = 0;       // 20 bits: the initiator queue

  static constexpr uint64_t not_trusted = 1;  // EE_bits 01: no trusted execution environment
  using Layout = HeaderLayout<size, Member<&Btah::opcode, 0, 8>, Required<8, 2, ta_version>,
                              Constant<10, 2, not_trusted>, Member<&Btah::token_present, 12, 1>,
                              Member<&Btah::user_data, 15, 1>, Member<&Btah::tassn, 16, 16>,
                              Member<&Btah::order, 34, 2>, Member<&Btah::target_present, 36, 1>,
                              Member<&Btah::solicited, 37, 1>, Member<&Btah::retry, 38, 1>,
                              Member<&Btah::allocate, 39, 1>,
                              // One bit of INI_RC_Type. The other one has no meaning here.
                              Member<&Btah::in_context, 42, 1>, Member<&Btah::rc_id, 44, 20>>;

  // Returns nothing, or false, if the version is not 0.
  static std::optional<Btah> parse(HeaderView<size> in) { return parse_header<Btah>(in); }
  bool assign(HeaderView<size> in) { return Layout::read(in, *this); }
  void emit(HeaderBytes<size> out) const { Layout::write(*this, out); }
  friend bool operator==(const Btah&, const Btah&) = default;

  // ---- the header as one word, the first byte of it in the highest bits

  uint64_t word() const {
    std::array<std::byte, size> bytes;
    emit(bytes);
    return load_be<size>(bytes.data());
  }
  // The bits that are the same in all messages of a queue, except that each has another TASSN: the
  // bits that neither the opcode, nor the order, nor the solicited event has.
  static constexpr uint64_t fixed_bits =
      ~(Field<0, 8>::in_word | Field<34, 2>::in_word | Field<37, 1>::in_word);
  static TaOpcode opcode_of(uint64_t word) {
    return static_cast<TaOpcode>(word >> Field<0, 8>::shift);
  }
  static uint32_t tassn_of(uint64_t word) {
    return static_cast<uint16_t>(word >> Field<16, 16>::shift);
  }
  static bool solicited_of(uint64_t word) { return (word & Field<37, 1>::in_word) != 0; }
  static uint32_t rc_id_of(uint64_t word) { return word & Field<44, 20>::mask; }
  // Returns the fixed bits of the word of a message with a token.
  static uint64_t message_word(uint32_t tassn, uint32_t rc_id) {
    static const uint64_t flags = Btah{.token_present = true, .target_present = true}.word();
    return flags | uint64_t{tassn} << Field<16, 16>::shift | rc_id;
  }
};

// Response status (UB 5.3, ATAH).
enum class Response : uint8_t {
  success = 0,             // info: how many further TASSNs it answers, up to 31
  receiver_not_ready = 1,  // info: wait 2 us * 2^info
  page_fault = 2,          // info: as for receiver_not_ready
  completer_error = 3,     // info: a CompleterError
  not_yet_placed = 5,      // as success, but the data is not in its final memory yet
};
enum class CompleterError : uint8_t {
  unsupported_request = 1,
  remote_abort = 2,
  no_room = 4,    // OURS: the target has no room to record the execution
  withdrawn = 3,  // OURS (feature filler): filler came before the slice had executed; it never will
};
inline constexpr uint32_t max_further_answers = 31;

// The header with which each answer begins.
struct Atah {
  static constexpr size_t size = 8;

  uint8_t opcode = 0;
  uint32_t tassn = 0;
  Response status = Response::success;
  uint8_t info = 0;  // 5 bits
  uint32_t rc_id = 0;

  using Layout = HeaderLayout<size, Member<&Atah::opcode, 0, 8>, Required<8, 2, ta_version>,
                              Member<&Atah::tassn, 16, 16>, Member<&Atah::status, 32, 3>,
                              Member<&Atah::info, 35, 5>, Member<&Atah::rc_id, 44, 20>>;

  // Returns nothing, or false, if the version is not 0.
  static std::optional<Atah> parse(HeaderView<size> in) { return parse_header<Atah>(in); }
  bool assign(HeaderView<size> in) { return Layout::read(in, *this); }
  void emit(HeaderBytes<size> out) const { Layout::write(*this, out); }
  friend bool operator==(const Atah&, const Atah&) = default;
};

// The memory that a request accesses.
struct Maetah {
  static constexpr size_t size = 16;

  uint64_t address = 0;   // of this packet's bytes (INFERRED, docs/protocol.md)
  uint32_t token_id = 0;  // 20 bits
  uint32_t length = 0;    // of the slice

  using Layout = HeaderLayout<size, Member<&Maetah::address, 0, 64>,
                              Member<&Maetah::token_id, 68, 20>, Member<&Maetah::length, 96, 32>>;

  static Maetah parse(HeaderView<size> in) { return read_header<Maetah>(in); }
  // Changes the address in a header that was emitted.
  static void place(HeaderBytes<size> header, uint64_t address) {
    store_be<8>(header.data(), address);
  }
  // `word`: the last 8 bytes of the header, in host order.
  static uint32_t token_id_of(uint64_t word) {
    return static_cast<uint32_t>(word >> Field<68, 20>::shift & Field<68, 20>::mask);
  }
  void emit(HeaderBytes<size> out) const { Layout::write(*this, out); }
  friend bool operator==(const Maetah&, const Maetah&) = default;
};

// The Jetty, or the group of Jetties, to which a request is sent.
struct Mtetah {
  static constexpr size_t size = 4;

  uint32_t target = 0;  // 22 bits: a type, 2 for a group and else 0, and a number of 20 bits
  uint8_t hint = 0;     // for a group that chooses the member by it

  using Layout = HeaderLayout<size, Member<&Mtetah::hint, 0, 8>, Member<&Mtetah::target, 10, 22>>;

  static Mtetah parse(HeaderView<size> in) { return read_header<Mtetah>(in); }
  void emit(HeaderBytes<size> out) const { Layout::write(*this, out); }
  friend bool operator==(const Mtetah&, const Mtetah&) = default;
};

// The token of the segment or Jetty that a request names.
struct Tvetah {
  static constexpr size_t size = 4;

  uint32_t token = 0;

  using Layout = HeaderLayout<size, Member<&Tvetah::token, 0, 32>>;

  static Tvetah parse(HeaderView<size> in) { return read_header<Tvetah>(in); }
  void emit(HeaderBytes<size> out) const { Layout::write(*this, out); }
  friend bool operator==(const Tvetah&, const Tvetah&) = default;
};

// The offset of the packet's bytes in the slice. Each Send has this header. In a Read_response the
// specification makes it optional (UB 5.3); liburma always sends and expects it there (OURS,
// docs/protocol.md).
struct Ofstetah {
  static constexpr size_t size = 4;

  uint32_t kib = 0;  // 24 bits, in units of 1 KiB

  using Layout = HeaderLayout<size, Member<&Ofstetah::kib, 8, 24>>;

  static Ofstetah parse(HeaderView<size> in) { return read_header<Ofstetah>(in); }
  void emit(HeaderBytes<size> out) const { Layout::write(*this, out); }
  friend bool operator==(const Ofstetah&, const Ofstetah&) = default;
};

// The immediate of a send or of a write.
struct Immetah {
  static constexpr size_t size = 16;

  uint64_t immediate = 0;
  uint32_t token = 0;           // of the target Jetty; write with immediate only, else zero
  uint32_t message_length = 0;  // of the whole work; write with immediate only, else zero

  using Layout =
      HeaderLayout<size, Member<&Immetah::immediate, 0, 64>, Member<&Immetah::token, 64, 32>,
                   Member<&Immetah::message_length, 96, 32>>;

  static Immetah parse(HeaderView<size> in) { return read_header<Immetah>(in); }
  void emit(HeaderBytes<size> out) const { Layout::write(*this, out); }
  friend bool operator==(const Immetah&, const Immetah&) = default;
};

// How an atomic store or load updates its word.
struct Udetah {
  static constexpr size_t size = 4;

  uint8_t update = 0;  // 4 bits: an Update

  using Layout = HeaderLayout<size, Member<&Udetah::update, 8, 4>>;

  static Udetah parse(HeaderView<size> in) { return read_header<Udetah>(in); }
  void emit(HeaderBytes<size> out) const { Layout::write(*this, out); }
  friend bool operator==(const Udetah&, const Udetah&) = default;
};

// For a write with notify: what is stored when its data is in place, where, and under which token.
struct Ntfetah {
  static constexpr size_t size = 24;

  uint64_t address = 0;
  uint32_t token_id = 0;  // 20 bits
  uint32_t token = 0;
  uint64_t value = 0;

  using Layout =
      HeaderLayout<size, Member<&Ntfetah::address, 0, 64>, Member<&Ntfetah::token_id, 68, 20>,
                   Member<&Ntfetah::token, 96, 32>, Member<&Ntfetah::value, 128, 64>>;

  static Ntfetah parse(HeaderView<size> in) { return read_header<Ntfetah>(in); }
  void emit(HeaderBytes<size> out) const { Layout::write(*this, out); }
  friend bool operator==(const Ntfetah&, const Ntfetah&) = default;
};

}  // namespace urma
