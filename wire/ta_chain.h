#pragma once

#include <optional>
#include <span>

#include "wire/ta_headers.h"

namespace urma {

// The bytes of a request's chain, with its token.
constexpr size_t chain_bytes(const OpcodeInfo& info) {
  return Btah::size + (info.user_data ? Udetah::size : 0) + (info.to_jetty ? Mtetah::size : 0) +
         (info.to_memory ? Maetah::size : 0) + (info.offset ? Ofstetah::size : 0) +
         (info.notify ? Ntfetah::size : 0) + (info.immediate ? Immetah::size : 0) + Tvetah::size;
}

// A request's whole chain, in the one order that all opcodes share (UB 5.3):
// BTAH [UDETAH] [MTETAH] [MAETAH] [OFSTETAH] [NTFETAH] [IMMETAH] [TVETAH].
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
  Udetah update;
  Mtetah target;
  Maetah memory;
  Ofstetah offset;
  Ntfetah notify;
  Immetah immediate;
  Tvetah token;

  // Returns the bytes written. `base.opcode` decides the chain; `out` holds max_size bytes.
  size_t emit(std::span<std::byte> out) { return emit(*find_opcode(base.opcode), out); }
  // The same for whoever knows the row: as a constant it leaves a few instructions.
  [[gnu::always_inline]] size_t emit(const OpcodeInfo& info, std::span<std::byte> out);
};

inline size_t TaRequest::emit(const OpcodeInfo& info, std::span<std::byte> out) {
  std::byte* at = out.data();
  const auto put = [&]<class Header>(const Header& header) {
    header.emit(HeaderBytes<Header::size>(at, Header::size));
    at += Header::size;
  };
  base.target_present = info.to_jetty;
  base.user_data = info.user_data;
  put(base);
  if (info.user_data) put(update);
  if (info.to_jetty) put(target);
  if (info.to_memory) put(memory);
  if (info.offset) put(offset);
  if (info.notify) put(notify);
  if (info.immediate) put(immediate);
  if (base.token_present) put(token);
  return static_cast<size_t>(at - out.data());
}

// Reads the BTAH of a request to a Jetty of `opcode`, with its token. False: it is something else.
inline bool assign_base(Btah& base, TaOpcode opcode, std::span<const std::byte> head) {
  return base.assign(head.first<Btah::size>()) && base.opcode == static_cast<uint8_t>(opcode) &&
         base.token_present && base.target_present && !base.user_data;
}

// What a message begins with, the chain of a send, with or without an immediate.
struct MessageHeaders {
  Btah base;
  Mtetah target;
  Ofstetah offset;
  Immetah immediate;
  Tvetah token;
  bool with_immediate = false;
  size_t bytes = 0;  // of the chain

  // False: it is something else, or it is cut off.
  bool assign(std::span<const std::byte> head) {
    constexpr size_t before = Btah::size + Mtetah::size + Ofstetah::size;
    if (head.size() < before + Tvetah::size) return false;
    with_immediate = !assign_base(base, TaOpcode::send, head);
    if (with_immediate && !assign_base(base, TaOpcode::send_immediate, head)) return false;
    bytes = before + (with_immediate ? Immetah::size : 0) + Tvetah::size;
    if (head.size() < bytes) return false;
    target = Mtetah::parse(head.subspan<Btah::size, Mtetah::size>());
    offset = Ofstetah::parse(head.subspan<Btah::size + Mtetah::size, Ofstetah::size>());
    if (with_immediate) immediate = Immetah::parse(head.subspan<before, Immetah::size>());
    token = Tvetah::parse(head.subspan(bytes - Tvetah::size).first<Tvetah::size>());
    return true;
  }
};
static_assert(chain_bytes(info_of(TaOpcode::send)) ==
              Btah::size + Mtetah::size + Ofstetah::size + Tvetah::size);
static_assert(chain_bytes(info_of(TaOpcode::send_immediate)) ==
              chain_bytes(info_of(TaOpcode::send)) + Immetah::size);

// The same of a write with an immediate.
struct ImmediateHeaders {
  static constexpr size_t bytes = chain_bytes(info_of(TaOpcode::write_immediate));

  Btah base;
  Mtetah target;
  Maetah memory;
  Immetah immediate;
  Tvetah token;

  bool assign(std::span<const std::byte> head) {
    constexpr size_t memory_at = Btah::size + Mtetah::size;
    constexpr size_t immediate_at = memory_at + Maetah::size;
    static_assert(immediate_at + Immetah::size + Tvetah::size == bytes);
    if (head.size() < bytes || !assign_base(base, TaOpcode::write_immediate, head)) return false;
    target = Mtetah::parse(head.subspan<Btah::size, Mtetah::size>());
    memory = Maetah::parse(head.subspan<memory_at, Maetah::size>());
    immediate = Immetah::parse(head.subspan<immediate_at, Immetah::size>());
    token = Tvetah::parse(head.subspan<immediate_at + Immetah::size, Tvetah::size>());
    return true;
  }
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
// The same into a fresh one. False: nothing.
bool parse_request(std::span<const std::byte> packet, ParsedRequest& request);

// A response's chain: ATAH [OFSTETAH].
struct TaResponse {
  static constexpr size_t max_size = Atah::size + Ofstetah::size;

  Atah base;
  Ofstetah offset;

  size_t bytes() const;
  size_t emit(std::span<std::byte> out) const;
};

struct ParsedResponse {
  TaResponse headers;
  const OpcodeInfo* info = nullptr;
  std::span<const std::byte> data;
};
std::optional<ParsedResponse> parse_response(std::span<const std::byte> packet);
bool parse_response(std::span<const std::byte> packet, ParsedResponse& response);

}  // namespace urma
