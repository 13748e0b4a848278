// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>

#include "wire/ta_headers.h"

namespace urma {

// The headers of a packet of the transaction layer, and their order.

// Returns the bytes of a request's chain, its token included.
constexpr size_t chain_bytes(const OpcodeInfo& info) {
  return Btah::size + (info.user_data ? Udetah::size : 0) + (info.to_jetty ? Mtetah::size : 0) +
         (info.to_memory ? Maetah::size : 0) + (info.offset ? Ofstetah::size : 0) +
         (info.notify ? Ntfetah::size : 0) + (info.immediate ? Immetah::size : 0) + Tvetah::size;
}

// Calls `visit` for each header behind the BTAH of a request of this opcode, in the one order that
// all opcodes share (UB 5.3):
// BTAH [UDETAH] [MTETAH] [MAETAH] [OFSTETAH] [NTFETAH] [IMMETAH] [TVETAH].
// A chain that serves some opcodes only has no members for the headers that these never have.
template <class Chain, class Visit>
[[gnu::always_inline]] inline void visit_chain(const OpcodeInfo& info, Chain& chain,
                                               Visit&& visit) {
  if constexpr (requires { chain.update; }) {
    if (info.user_data) visit(chain.update);
  }
  if constexpr (requires { chain.target; }) {
    if (info.to_jetty) visit(chain.target);
  }
  if constexpr (requires { chain.memory; }) {
    if (info.to_memory) visit(chain.memory);
  }
  if constexpr (requires { chain.offset; }) {
    if (info.offset) visit(chain.offset);
  }
  if constexpr (requires { chain.notify; }) {
    if (info.notify) visit(chain.notify);
  }
  if constexpr (requires { chain.immediate; }) {
    if (info.immediate) visit(chain.immediate);
  }
  if (chain.base.token_present) visit(chain.token);
}

// Takes headers off the front of a packet that the caller knows to hold them.
class ChainReader {
 public:
  explicit ChainReader(std::span<const std::byte> packet) : packet_(packet), at_(packet.data()) {}

  // Returns false if the header is of an unknown version.
  template <class Header>
  [[gnu::always_inline]] bool take(Header& header) {
    const bool known = Header::Layout::read(HeaderView<Header::size>(at_, Header::size), header);
    at_ += Header::size;
    return known;
  }
  std::span<const std::byte> rest() const { return {at_, packet_.data() + packet_.size()}; }

 private:
  std::span<const std::byte> packet_;
  const std::byte* at_;
};

// A request's whole chain.
struct TaRequest {
  // The size of the longest chain, that of a write with notify. No opcode has all headers.
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
  // As above, for a caller that has the opcode's row: if the row is a constant, few instructions
  // remain.
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
  visit_chain(info, *this, put);
  return static_cast<size_t>(at - out.data());
}

// Reads the headers behind the BTAH of a request with this opcode and a token. `packet` begins with
// the BTAH, and holds the chain; each byte of these headers is read once.
template <TaOpcode opcode, class Chain>
[[gnu::always_inline]] inline void read_behind_base(Chain& chain,
                                                    std::span<const std::byte> packet) {
  ChainReader reader(packet.subspan(Btah::size));
  chain.base.token_present = true;
  visit_chain(info_of(opcode), chain, [&](auto& header) { reader.take(header); });
}

// Reads the chain of a request to a Jetty with its token, if it has this opcode. Returns false if
// it is another request, or is cut off.
template <TaOpcode opcode, class Chain>
bool read_chain(Chain& chain, std::span<const std::byte> head) {
  constexpr const OpcodeInfo& info = info_of(opcode);
  static_assert(info.to_jetty && !info.user_data);
  if (head.size() < chain_bytes(info)) return false;
  ChainReader reader(head);
  const Btah& base = chain.base;
  if (!reader.take(chain.base) || base.opcode != static_cast<uint8_t>(opcode) ||
      !base.token_present || !base.target_present || base.user_data) {
    return false;
  }
  visit_chain(info, chain, [&](auto& header) { reader.take(header); });
  return true;
}

// The chain of a send, with or without an immediate.
struct MessageHeaders {
  Btah base;
  Mtetah target;
  Ofstetah offset;
  Immetah immediate;
  Tvetah token;
  bool with_immediate = false;
  size_t bytes = 0;  // of the chain

  // Returns false if the packet is something else, or is cut off.
  bool assign(std::span<const std::byte> head) {
    with_immediate = !read_chain<TaOpcode::send>(*this, head);
    if (with_immediate && !read_chain<TaOpcode::send_immediate>(*this, head)) return false;
    bytes = chain_bytes(info_of(with_immediate ? TaOpcode::send_immediate : TaOpcode::send));
    return true;
  }
};

// The chain of a write with a token, as words in host order. Packets of one slice differ in the
// address only.
struct WriteWords {
  static constexpr size_t size = chain_bytes(info_of(TaOpcode::write));
  static_assert(size == Btah::size + Maetah::size + Tvetah::size);

  uint64_t base = 0;     // BTAH; no packet has 0
  uint64_t address = 0;  // of MAETAH
  uint64_t range = 0;    // the rest of MAETAH
  uint32_t token = 0;

  // Each byte is read once.
  static WriteWords read(HeaderView<size> in) {
    return {.base = load_be<8>(in.data()),
            .address = load_be<8>(in.data() + Btah::size),
            .range = load_be<8>(in.data() + Btah::size + 8),
            .token = static_cast<uint32_t>(load_be<4>(in.data() + Btah::size + Maetah::size))};
  }
  friend bool operator==(const WriteWords&, const WriteWords&) = default;
};

// The chain of a write with an immediate.
struct ImmediateHeaders {
  Btah base;
  Mtetah target;
  Maetah memory;
  Immetah immediate;
  Tvetah token;
};

// A request as it was received.
struct ParsedRequest {
  TaRequest headers;
  const OpcodeInfo* info = nullptr;  // null if liburma does not know this kind of request
  std::span<const std::byte> data;
};
// Returns nothing if the packet is not a request of version 0, or lacks headers that its opcode
// needs. A request of an unknown kind is parsed as far as its BTAH, so that it can be answered
// "unsupported" instead of leaving its initiator waiting.
std::optional<ParsedRequest> parse_request(std::span<const std::byte> packet);
// As above, but writes to a new `request` and returns false instead of nothing.
bool parse_request(std::span<const std::byte> packet, ParsedRequest& request);

// A response's chain: ATAH [OFSTETAH].
struct TaResponse {
  static constexpr size_t max_size = Atah::size + Ofstetah::size;

  Atah base;
  Ofstetah offset;

  size_t bytes() const;
  size_t emit(std::span<std::byte> out) const;
};

// A response as it was received; parsed as a request is.
struct ParsedResponse {
  TaResponse headers;
  const OpcodeInfo* info = nullptr;
  std::span<const std::byte> data;
};
std::optional<ParsedResponse> parse_response(std::span<const std::byte> packet);
bool parse_response(std::span<const std::byte> packet, ParsedResponse& response);

}  // namespace urma
