// SPDX-License-Identifier: Apache-2.0
#include "jetty/slicer.h"

#include <algorithm>

#include "base/assert.h"
#include "base/bulk_copy.h"
#include "base/copy.h"
#include "jetty/atomics.h"
#include "wire/ta_chain.h"
#include "wire/tp_headers.h"

namespace urma::jetty {

namespace {

TaOpcode opcode_of(const SlicePacket& packet) {
  const Berth& berth = packet.berth;
  switch (berth.operation) {
    case Operation::read:
      return TaOpcode::read;
    case Operation::send:
      return berth.with_immediate ? TaOpcode::send_immediate : TaOpcode::send;
    default:
      break;
  }
  // Only the last slice notifies, when all others have been placed.
  if (!packet.last) return TaOpcode::write;
  if (berth.with_notify) return TaOpcode::write_notify;
  return berth.with_immediate ? TaOpcode::write_immediate : TaOpcode::write;
}

std::span<std::byte> rest_of_head(const TxFrame& frame) {
  return {frame.head + frame.head_bytes, TxFrame::head_room - frame.head_bytes};
}

size_t operand_bytes(const Berth& berth) { return operands_of(berth.atomic) * berth.bytes; }

// Writes headers and operands: an atomic is one packet.
size_t write_atomic(const SlicePacket& packet, std::span<std::byte> out) {
  const Berth& berth = packet.berth;
  TaRequest request;
  request.base = {.opcode = static_cast<uint8_t>(berth.atomic),
                  .token_present = true,
                  .tassn = packet.tassn.wire(),
                  .order = packet.order,
                  .retry = packet.retry,
                  .allocate = packet.allocate,
                  .in_context = packet.in_context,
                  .rc_id = packet.rc_id};
  request.update.update = static_cast<uint8_t>(berth.update);
  request.token.token = number(berth.token);
  request.memory = {
      .address = berth.address, .token_id = number(berth.token_id), .length = berth.bytes};
  const size_t headers = request.emit(out);
  put_little(berth.immediate, out.subspan(headers, berth.bytes));
  if (operands_of(berth.atomic) > 1) {
    put_little(packet.expected, out.subspan(headers + berth.bytes, berth.bytes));
  }
  return headers + operand_bytes(berth);
}

// The opcode is a constant, so that headers that it does not have cost nothing.
template <TaOpcode opcode>
[[gnu::always_inline]] inline size_t write_headers_of(const SlicePacket& packet,
                                                      std::span<std::byte> out) {
  constexpr const OpcodeInfo& info = info_of(opcode);
  const Berth& berth = packet.berth;
  const uint32_t offset = packet.index * packet.packet_bytes;

  TaRequest request;
  request.base = {.opcode = static_cast<uint8_t>(opcode),
                  .token_present = true,
                  .tassn = packet.tassn.wire(),
                  .order = packet.order,
                  .solicited = berth.solicited,
                  .retry = packet.retry,
                  .allocate = packet.allocate,
                  .in_context = packet.in_context,
                  .rc_id = packet.rc_id};
  request.target = {.target = number(berth.target), .hint = berth.group_hint};
  request.offset.kib = offset / 1024;
  request.token.token = number(info.to_memory ? berth.token : berth.target_token);
  request.memory = {.address = berth.address + packet.offset + offset,
                    .token_id = number(berth.token_id),
                    .length = packet.bytes};
  request.immediate.immediate = berth.immediate;
  if (info.immediate && info.to_memory) {
    request.immediate.token = number(berth.target_token);
    request.immediate.message_length = berth.bytes;
  }
  if (info.notify) {
    request.notify = {.address = packet.notify.address,
                      .token_id = number(packet.notify.token_id),
                      .token = number(packet.notify.token),
                      .value = berth.immediate};
  }
  return request.emit(info, out);
}

// Calls `function` with the opcode as a template argument.
template <class Function>
auto for_opcode(TaOpcode opcode, Function&& function) {
  switch (opcode) {
    case TaOpcode::send:
      return function.template operator()<TaOpcode::send>();
    case TaOpcode::send_immediate:
      return function.template operator()<TaOpcode::send_immediate>();
    case TaOpcode::write:
      return function.template operator()<TaOpcode::write>();
    case TaOpcode::write_immediate:
      return function.template operator()<TaOpcode::write_immediate>();
    case TaOpcode::write_notify:
      return function.template operator()<TaOpcode::write_notify>();
    case TaOpcode::read:
      return function.template operator()<TaOpcode::read>();
    default:
      break;
  }
  URMA_ASSERT(false, "a slice is of a request");
  return function.template operator()<TaOpcode::send>();
}

void add_payload_of(const SlicePacket& packet, TxFrame& frame) {
  const uint32_t bytes = payload_of(packet);
  if (packet.staged != nullptr) [[unlikely]] {
    const Piece payload{packet.staged, bytes};
    return add_payload({&payload, 1}, 0, bytes, frame);
  }
  add_payload(packet.pieces, packet.offset + packet.index * packet.packet_bytes, bytes, frame);
}

}  // namespace

uint32_t payload_of(const SlicePacket& packet) {
  if (packet.berth.operation == Operation::read) return 0;
  return std::min(packet.packet_bytes, packet.bytes - packet.index * packet.packet_bytes);
}

void write_packet(const SlicePacket& packet, TxFrame& frame) {
  static_assert(Rtph::size + TaRequest::max_size + most_copied_behind_headers <=
                TxFrame::head_room);
  if (packet.berth.operation == Operation::atomic) {
    const size_t all = write_atomic(packet, rest_of_head(frame));
    frame.head_bytes = static_cast<uint8_t>(frame.head_bytes + all);
    return;
  }
  const size_t headers = for_opcode(opcode_of(packet), [&]<TaOpcode opcode>() {
    return write_headers_of<opcode>(packet, rest_of_head(frame));
  });
  frame.head_bytes = static_cast<uint8_t>(frame.head_bytes + headers);
  add_payload_of(packet, frame);
}

// The headers of a slice's packets differ in where the packet's data lies.
void write_further_packet(const SlicePacket& packet, const TxFrame& before, TxFrame& frame) {
  const OpcodeInfo& info = info_of(opcode_of(packet));
  const uint32_t offset = packet.index * packet.packet_bytes;
  const size_t headers = chain_bytes(info);
  std::byte* const head = frame.head + frame.head_bytes;
  copy_bytes(head, before.head + frame.head_bytes, headers);
  std::byte* at = head + Btah::size + (info.to_jetty ? Mtetah::size : 0);
  if (info.to_memory) {
    Maetah::place(HeaderBytes<Maetah::size>(at, Maetah::size),
                  packet.berth.address + packet.offset + offset);
    at += Maetah::size;
  }
  if (info.offset) {
    Ofstetah{.kib = offset / 1024}.emit(HeaderBytes<Ofstetah::size>(at, Ofstetah::size));
  }
  frame.head_bytes = static_cast<uint8_t>(frame.head_bytes + headers);
  add_payload_of(packet, frame);
}

namespace {

template <TaOpcode opcode>
[[gnu::always_inline]] inline bool write_straight_as(const SlicePacket& packet,
                                                     transport::Channel& channel) {
  constexpr size_t headers = chain_bytes(info_of(opcode));
  const size_t payload = opcode == TaOpcode::read ? 0 : packet.bytes;
  std::byte* const to = channel.begin(static_cast<uint32_t>(headers + payload));
  if (to == nullptr) return false;
  write_headers_of<opcode>(packet, {to, headers});
  copy_out(packet.pieces, packet.offset, {to + headers, payload});
  channel.end();
  return true;
}

}  // namespace

bool write_straight(const SlicePacket& packet, transport::Channel& channel) {
  if (packet.berth.operation == Operation::atomic) {
    const auto opcode = static_cast<TaOpcode>(packet.berth.atomic);
    const size_t bytes = chain_bytes(info_of(opcode)) + operand_bytes(packet.berth);
    std::byte* const to = channel.begin(static_cast<uint32_t>(bytes));
    if (to == nullptr) return false;
    write_atomic(packet, {to, bytes});
    channel.end();
    return true;
  }
  return for_opcode(opcode_of(packet),
                    [&]<TaOpcode opcode>() { return write_straight_as<opcode>(packet, channel); });
}

bool write_message(const Berth& berth, std::span<const Piece> pieces, Tassn tassn, uint32_t rc_id,
                   transport::Channel& channel) {
  static constexpr NotifyTarget none{};
  const SlicePacket packet{.berth = berth,
                           .notify = none,
                           .pieces = pieces,
                           .tassn = tassn,
                           .bytes = berth.bytes,
                           .last = true,
                           .rc_id = rc_id};
  return berth.with_immediate ? write_straight_as<TaOpcode::send_immediate>(packet, channel)
                              : write_straight_as<TaOpcode::send>(packet, channel);
}

void write_filler(Tassn tassn, uint32_t rc_id, bool retry, TxFrame& frame) {
  const Btah base{.tassn = tassn.wire(), .retry = retry, .rc_id = rc_id};
  base.emit(rest_of_head(frame).first<Btah::size>());
  frame.head_bytes = static_cast<uint8_t>(frame.head_bytes + Btah::size);
}

void gather(std::span<const Piece> pieces, uint32_t offset, uint32_t bytes, TxFrame& frame) {
  for_parts(pieces, offset, bytes, [&](const std::byte* data, uint32_t here) {
    frame.pieces[frame.piece_count++] = {data, here};
  });
}

namespace {

template <class Copy>
void copy_out_with(Copy copy, std::span<const Piece> pieces, uint32_t offset,
                   std::span<std::byte> out) {
  std::byte* to = out.data();
  for_parts(pieces, offset, out.size(), [&](const std::byte* data, uint32_t here) {
    copy(to, data, here);
    to += here;
  });
}

template <class Copy>
void scatter_with(Copy copy, std::span<const Piece> pieces, uint32_t offset,
                  std::span<const std::byte> data) {
  const std::byte* from = data.data();
  for_parts(pieces, offset, data.size(), [&](const std::byte* to, uint32_t here) {
    copy(const_cast<std::byte*>(to), from, here);
    from += here;
  });
}

}  // namespace

void copy_out_pieces(std::span<const Piece> pieces, uint32_t offset, std::span<std::byte> out) {
  copy_out_with(copy_bytes, pieces, offset, out);
}
void copy_out_past_caches(std::span<const Piece> pieces, uint32_t offset,
                          std::span<std::byte> out) {
  copy_out_with(copy_past_caches, pieces, offset, out);
}

void scatter_pieces(std::span<const Piece> pieces, uint32_t offset,
                    std::span<const std::byte> data) {
  scatter_with(copy_bytes, pieces, offset, data);
}
void scatter_past_caches(std::span<const Piece> pieces, uint32_t offset,
                         std::span<const std::byte> data) {
  scatter_with(copy_past_caches, pieces, offset, data);
}

}  // namespace urma::jetty
