#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/bits.h"
#include "urma/core/ids.h"
#include "urma/core/order.h"
#include "wire/opcode.h"

namespace urma {

// The transaction layer's headers (UB 7, appendix B). Each struct is what one header says; `parse`
// and `emit` are inverse, and fields that we neither use nor understand are sent as zero and
// ignored when received.

struct Btah {
  static constexpr size_t size = 8;

  uint8_t opcode = 0;
  bool token_present = false;   // TV_EN: TVETAH follows
  bool target_present = false;  // MT_EN: MTETAH follows
  bool user_data = false;       // UD_Flag: UDETAH follows
  uint32_t tassn = 0;           // 16 bits
  Order order = Order::none;
  bool solicited = false;   // FCE: raise a completion event at the target
  bool retry = false;       // the same TASSN has been sent before
  bool allocate = false;    // Alloc: keep a sequence context; nothing of order before it is to come
  bool in_context = false;  // INI_RC_Type 10: the queue's sequence context keeps its order
  uint32_t rc_id = 0;       // 20 bits: the initiator queue

  static std::optional<Btah> parse(HeaderView<size> in);  // nothing: not version 0
  bool assign(HeaderView<size> in);                       // the same; false: nothing
  void emit(HeaderBytes<size> out) const;
  friend bool operator==(const Btah&, const Btah&) = default;
};

// Response status (UB 5.3, ATAH).
enum class Response : uint8_t {
  success = 0,             // info: how many further TASSNs it answers, up to 31
  receiver_not_ready = 1,  // info: wait 2 us * 2^info
  page_fault = 2,          // likewise
  completer_error = 3,     // info: a CompleterError
  not_yet_placed = 5,      // as success, data not in final memory yet
};
enum class CompleterError : uint8_t {
  unsupported_request = 1,
  remote_abort = 2,
  no_room = 4,    // OURS: no execution record can be kept of it
  withdrawn = 3,  // OURS (feature filler): filler came before it had executed; it will not
};
inline constexpr uint32_t max_further_answers = 31;

struct Atah {
  static constexpr size_t size = 8;

  uint8_t opcode = 0;
  uint32_t tassn = 0;
  Response status = Response::success;
  uint8_t info = 0;  // 5 bits
  uint32_t rc_id = 0;

  static std::optional<Atah> parse(HeaderView<size> in);
  bool assign(HeaderView<size> in);
  void emit(HeaderBytes<size> out) const;
  friend bool operator==(const Atah&, const Atah&) = default;
};

struct Maetah {
  static constexpr size_t size = 16;

  uint64_t address = 0;   // of this packet's bytes (INFERRED, docs/protocol.md)
  uint32_t token_id = 0;  // 20 bits
  uint32_t length = 0;    // of the slice

  static Maetah parse(HeaderView<size> in);
  void emit(HeaderBytes<size> out) const;
  friend bool operator==(const Maetah&, const Maetah&) = default;
};

struct Mtetah {
  static constexpr size_t size = 4;

  uint32_t target = 0;  // 20 bits: a Jetty or JFR

  static Mtetah parse(HeaderView<size> in);
  void emit(HeaderBytes<size> out) const;
  friend bool operator==(const Mtetah&, const Mtetah&) = default;
};

struct Tvetah {
  static constexpr size_t size = 4;

  uint32_t token = 0;

  static Tvetah parse(HeaderView<size> in);
  void emit(HeaderBytes<size> out) const;
  friend bool operator==(const Tvetah&, const Tvetah&) = default;
};

struct Ofstetah {
  static constexpr size_t size = 4;

  uint32_t kib = 0;  // 24 bits: where this packet's bytes lie in the slice, in units of 1 KiB

  static Ofstetah parse(HeaderView<size> in);
  void emit(HeaderBytes<size> out) const;
  friend bool operator==(const Ofstetah&, const Ofstetah&) = default;
};

struct Immetah {
  static constexpr size_t size = 16;

  uint64_t immediate = 0;
  uint32_t token = 0;           // of the target Jetty; write with immediate only, else zero
  uint32_t message_length = 0;  // of the whole work; write with immediate only, else zero

  static Immetah parse(HeaderView<size> in);
  void emit(HeaderBytes<size> out) const;
  friend bool operator==(const Immetah&, const Immetah&) = default;
};

// Of an atomic store or load: how it updates its word.
struct Udetah {
  static constexpr size_t size = 4;

  uint8_t update = 0;  // 4 bits: an Update

  static Udetah parse(HeaderView<size> in);
  void emit(HeaderBytes<size> out) const;
  friend bool operator==(const Udetah&, const Udetah&) = default;
};

// Of a write with notify: where, under which token, and what is stored when its data is in place.
struct Ntfetah {
  static constexpr size_t size = 24;

  uint64_t address = 0;
  uint32_t token_id = 0;  // 20 bits
  uint32_t token = 0;
  uint64_t value = 0;

  static Ntfetah parse(HeaderView<size> in);
  void emit(HeaderBytes<size> out) const;
  friend bool operator==(const Ntfetah&, const Ntfetah&) = default;
};

// ---- how each is laid out: bits counted from the start of the header, as the specification draws
// them. Inline, so that a chain whose opcode is known is a few instructions.

inline constexpr uint64_t ta_version = 0;

namespace btah {
using Opcode = Field<0, 8>;
using Version = Field<8, 2>;
using ExecutionEnvironment = Field<10, 2>;
using TokenPresent = Field<12, 1>;
using UserData = Field<15, 1>;
using IniTassn = Field<16, 16>;
using TargetOrder = Field<33, 3>;
using TargetPresent = Field<36, 1>;
using Solicited = Field<37, 1>;
using Retry = Field<38, 1>;
using Allocate = Field<39, 1>;
using SequenceContext = Field<42, 1>;  // of INI_RC_Type, whose other bit says nothing
using RcId = Field<44, 20>;
constexpr uint64_t not_trusted = 1;  // EE_bits 01: no trusted execution environment
}  // namespace btah

namespace atah {
using Opcode = Field<0, 8>;
using Version = Field<8, 2>;
using IniTassn = Field<16, 16>;
using Status = Field<32, 3>;
using Info = Field<35, 5>;
using RcId = Field<44, 20>;
}  // namespace atah

namespace maetah {
using Address = Field<0, 64>;
using Token = Field<68, 20>;
using Length = Field<96, 32>;
}  // namespace maetah

namespace mtetah {
using Target = Field<12, 20>;
}

namespace tvetah {
using Value = Field<0, 32>;
}

namespace ofstetah {
using Offset = Field<8, 24>;
}

namespace immetah {
using Immediate = Field<0, 64>;
using Token = Field<64, 32>;
using Length = Field<96, 32>;
}  // namespace immetah

namespace udetah {
using Update = Field<8, 4>;
}

namespace ntfetah {
using Address = Field<0, 64>;
using TokenId = Field<68, 20>;
using Token = Field<96, 32>;
using Value = Field<128, 64>;
}  // namespace ntfetah

inline bool Btah::assign(HeaderView<size> bytes) {
  const HeaderWords in(bytes);
  if (btah::Version::get(in) != ta_version) return false;
  opcode = static_cast<uint8_t>(btah::Opcode::get(in));
  token_present = btah::TokenPresent::get(in) != 0;
  target_present = btah::TargetPresent::get(in) != 0;
  user_data = btah::UserData::get(in) != 0;
  tassn = static_cast<uint32_t>(btah::IniTassn::get(in));
  order = static_cast<Order>(btah::TargetOrder::get(in) & 3);
  solicited = btah::Solicited::get(in) != 0;
  retry = btah::Retry::get(in) != 0;
  allocate = btah::Allocate::get(in) != 0;
  in_context = btah::SequenceContext::get(in) != 0;
  rc_id = static_cast<uint32_t>(btah::RcId::get(in));
  return true;
}

inline std::optional<Btah> Btah::parse(HeaderView<size> bytes) {
  std::optional<Btah> header(std::in_place);
  if (!header->assign(bytes)) header.reset();
  return header;
}

inline void Btah::emit(HeaderBytes<size> bytes) const {
  HeaderWords<size> out;
  btah::Opcode::set(out, opcode);
  btah::Version::set(out, ta_version);
  btah::ExecutionEnvironment::set(out, btah::not_trusted);
  btah::TokenPresent::set(out, token_present);
  btah::UserData::set(out, user_data);
  btah::IniTassn::set(out, tassn);
  btah::TargetOrder::set(out, static_cast<uint64_t>(order));
  btah::TargetPresent::set(out, target_present);
  btah::Solicited::set(out, solicited);
  btah::Retry::set(out, retry);
  btah::Allocate::set(out, allocate);
  btah::SequenceContext::set(out, in_context);
  btah::RcId::set(out, rc_id);
  out.store(bytes);
}

inline bool Atah::assign(HeaderView<size> bytes) {
  const HeaderWords in(bytes);
  if (atah::Version::get(in) != ta_version) return false;
  opcode = static_cast<uint8_t>(atah::Opcode::get(in));
  tassn = static_cast<uint32_t>(atah::IniTassn::get(in));
  status = static_cast<Response>(atah::Status::get(in));
  info = static_cast<uint8_t>(atah::Info::get(in));
  rc_id = static_cast<uint32_t>(atah::RcId::get(in));
  return true;
}

inline std::optional<Atah> Atah::parse(HeaderView<size> bytes) {
  std::optional<Atah> header(std::in_place);
  if (!header->assign(bytes)) header.reset();
  return header;
}

inline void Atah::emit(HeaderBytes<size> bytes) const {
  HeaderWords<size> out;
  atah::Opcode::set(out, opcode);
  atah::Version::set(out, ta_version);
  atah::IniTassn::set(out, tassn);
  atah::Status::set(out, static_cast<uint64_t>(status));
  atah::Info::set(out, info);
  atah::RcId::set(out, rc_id);
  out.store(bytes);
}

inline Maetah Maetah::parse(HeaderView<size> bytes) {
  const HeaderWords in(bytes);
  return {.address = maetah::Address::get(in),
          .token_id = static_cast<uint32_t>(maetah::Token::get(in)),
          .length = static_cast<uint32_t>(maetah::Length::get(in))};
}

inline void Maetah::emit(HeaderBytes<size> bytes) const {
  HeaderWords<size> out;
  maetah::Address::set(out, address);
  maetah::Token::set(out, token_id);
  maetah::Length::set(out, length);
  out.store(bytes);
}

inline Mtetah Mtetah::parse(HeaderView<size> bytes) {
  const HeaderWords in(bytes);
  return {.target = static_cast<uint32_t>(mtetah::Target::get(in))};
}

inline void Mtetah::emit(HeaderBytes<size> bytes) const {
  HeaderWords<size> out;
  mtetah::Target::set(out, target);
  out.store(bytes);
}

inline Tvetah Tvetah::parse(HeaderView<size> bytes) {
  const HeaderWords in(bytes);
  return {.token = static_cast<uint32_t>(tvetah::Value::get(in))};
}

inline void Tvetah::emit(HeaderBytes<size> bytes) const {
  HeaderWords<size> out;
  tvetah::Value::set(out, token);
  out.store(bytes);
}

inline Ofstetah Ofstetah::parse(HeaderView<size> bytes) {
  const HeaderWords in(bytes);
  return {.kib = static_cast<uint32_t>(ofstetah::Offset::get(in))};
}

inline void Ofstetah::emit(HeaderBytes<size> bytes) const {
  HeaderWords<size> out;
  ofstetah::Offset::set(out, kib);
  out.store(bytes);
}

inline Immetah Immetah::parse(HeaderView<size> bytes) {
  const HeaderWords in(bytes);
  return {.immediate = immetah::Immediate::get(in),
          .token = static_cast<uint32_t>(immetah::Token::get(in)),
          .message_length = static_cast<uint32_t>(immetah::Length::get(in))};
}

inline void Immetah::emit(HeaderBytes<size> bytes) const {
  HeaderWords<size> out;
  immetah::Immediate::set(out, immediate);
  immetah::Token::set(out, token);
  immetah::Length::set(out, message_length);
  out.store(bytes);
}

inline Udetah Udetah::parse(HeaderView<size> bytes) {
  const HeaderWords in(bytes);
  return {.update = static_cast<uint8_t>(udetah::Update::get(in))};
}

inline void Udetah::emit(HeaderBytes<size> bytes) const {
  HeaderWords<size> out;
  udetah::Update::set(out, update);
  out.store(bytes);
}

inline Ntfetah Ntfetah::parse(HeaderView<size> bytes) {
  const HeaderWords in(bytes);
  return {.address = ntfetah::Address::get(in),
          .token_id = static_cast<uint32_t>(ntfetah::TokenId::get(in)),
          .token = static_cast<uint32_t>(ntfetah::Token::get(in)),
          .value = ntfetah::Value::get(in)};
}

inline void Ntfetah::emit(HeaderBytes<size> bytes) const {
  HeaderWords<size> out;
  ntfetah::Address::set(out, address);
  ntfetah::TokenId::set(out, token_id);
  ntfetah::Token::set(out, token);
  ntfetah::Value::set(out, value);
  out.store(bytes);
}

}  // namespace urma
