#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "urma/base/bits.h"
#include "urma/core/ids.h"
#include "urma/core/opcode.h"

namespace urma {

// The transaction layer's headers (UB 7, appendix B). Each struct is what one header says; `parse`
// and `emit` are inverse, and fields that we neither use nor understand are sent as zero and
// ignored when received.

// Order tag of a request (UB 5.2): how it may overtake others of its initiator queue.
enum class Order : uint8_t { none = 0, relaxed = 1, strong = 2 };

struct Btah {
  static constexpr size_t size = 8;

  uint8_t opcode = 0;
  bool token_present = false;   // TV_EN: TVETAH follows
  bool target_present = false;  // MT_EN: MTETAH follows
  bool user_data = false;       // UD_Flag: UDETAH follows; never sent, see parse_request
  uint32_t tassn = 0;           // 16 bits
  Order order = Order::none;
  bool solicited = false;  // FCE: raise a completion event at the target
  bool retry = false;      // the same TASSN has been sent before
  uint32_t rc_id = 0;      // 20 bits: the initiator queue

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

// The bytes of a request's chain, with its token.
constexpr size_t chain_bytes(const OpcodeInfo& info) {
  return Btah::size + (info.to_jetty ? Mtetah::size : 0) + (info.to_memory ? Maetah::size : 0) +
         (info.offset ? Ofstetah::size : 0) + (info.notify ? Ntfetah::size : 0) +
         (info.immediate ? Immetah::size : 0) + Tvetah::size;
}

// A request's whole chain, in the one order that all opcodes share (UB 5.3):
// BTAH [MTETAH] [MAETAH] [OFSTETAH] [NTFETAH] [IMMETAH] [TVETAH].
struct TaRequest {
  // Of the longest chain, that of a write with notify. No opcode has all headers.
  static constexpr size_t max_size = [] {
    size_t most = 0;
    for (const OpcodeInfo& info : opcodes) {
      if (info.request && chain_bytes(info) > most) most = chain_bytes(info);
    }
    return most;
  }();

  Btah base;
  Mtetah target;
  Maetah memory;
  Ofstetah offset;
  Ntfetah notify;
  Immetah immediate;
  Tvetah token;

  // Returns the bytes written. `base.opcode` decides the chain; `out` holds max_size bytes.
  size_t emit(std::span<std::byte> out);
};

struct ParsedRequest {
  TaRequest headers;
  const OpcodeInfo* info = nullptr;  // null: a request of a kind that we do not know
  std::span<const std::byte> data;
};
// Nothing when the packet is no request of version 0, or lacks headers that its opcode needs. A
// request that we do not know is parsed as far as its BTAH, so that it can be answered
// "unsupported" instead of leaving its initiator to wait.
std::optional<ParsedRequest> parse_request(std::span<const std::byte> packet);

// A response's chain: ATAH [OFSTETAH].
struct TaResponse {
  static constexpr size_t max_size = Atah::size + Ofstetah::size;

  Atah base;
  Ofstetah offset;

  size_t emit(std::span<std::byte> out) const;
};

struct ParsedResponse {
  TaResponse headers;
  const OpcodeInfo* info = nullptr;
  std::span<const std::byte> data;
};
std::optional<ParsedResponse> parse_response(std::span<const std::byte> packet);

}  // namespace urma
