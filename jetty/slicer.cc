#include "jetty/slicer.h"

#include <algorithm>
#include <cstring>

#include "urma/base/assert.h"
#include "urma/core/ta_headers.h"

namespace urma::jetty {
namespace {

TaOpcode opcode_of(const Berth& berth, const Slice& slice) {
  switch (berth.operation) {
    case Operation::read:
      return TaOpcode::read;
    case Operation::send:
      return berth.with_immediate ? TaOpcode::send_immediate : TaOpcode::send;
    default:
      break;
  }
  // Only the last slice tells, when all others have been placed.
  if (!slice.last) return TaOpcode::write;
  if (berth.with_notify) return TaOpcode::write_notify;
  return berth.with_immediate ? TaOpcode::write_immediate : TaOpcode::write;
}

std::span<std::byte> rest_of_head(const TxFrame& frame) {
  return {frame.head + frame.head_bytes, TxFrame::head_room - frame.head_bytes};
}

}  // namespace

void write_packet(const SlicePacket& packet, TxFrame& frame) {
  const Berth& berth = packet.berth;
  const Slice& slice = packet.slice;
  const TaOpcode opcode = opcode_of(berth, slice);
  const uint32_t offset = packet.index * packet.packet_bytes;

  TaRequest request;
  request.base = {.opcode = static_cast<uint8_t>(opcode),
                  .token_present = true,
                  .tassn = slice.tassn.wire(),
                  .solicited = berth.solicited,
                  .retry = slice.retry,
                  .rc_id = packet.rc_id};
  if (berth.operation == Operation::send) {
    request.offset.kib = offset / 1024;
    request.token.token = number(berth.target_token);
  } else {
    request.memory = {.address = berth.address + slice.offset + offset,
                      .token_id = number(berth.token_id),
                      .length = slice.bytes};
    request.token.token = number(berth.token);
  }
  request.target.target = number(berth.target);
  request.immediate.immediate = berth.immediate;
  if (opcode == TaOpcode::write_immediate) {
    request.immediate.token = number(berth.target_token);
    request.immediate.message_length = berth.bytes;
  }
  if (opcode == TaOpcode::write_notify) {
    request.notify = {.address = packet.notify.address,
                      .token_id = number(packet.notify.token_id),
                      .token = number(packet.notify.token),
                      .value = berth.immediate};
  }
  frame.head_bytes = static_cast<uint16_t>(frame.head_bytes + request.emit(rest_of_head(frame)));
  if (berth.operation == Operation::read) return;
  gather(packet.pieces, slice.offset + offset, std::min(packet.packet_bytes, slice.bytes - offset),
         frame);
}

void write_filler(Tassn tassn, uint32_t rc_id, bool retry, TxFrame& frame) {
  const Btah base{.tassn = tassn.wire(), .retry = retry, .rc_id = rc_id};
  base.emit(rest_of_head(frame).first<Btah::size>());
  frame.head_bytes = static_cast<uint16_t>(frame.head_bytes + Btah::size);
}

void gather(std::span<const Piece> pieces, uint32_t offset, uint32_t bytes, TxFrame& frame) {
  for (const Piece& piece : pieces) {
    if (bytes == 0) return;
    if (offset >= piece.bytes) {
      offset -= piece.bytes;
      continue;
    }
    const uint32_t here = std::min(piece.bytes - offset, bytes);
    frame.pieces[frame.piece_count++] = {piece.data + offset, here};
    offset = 0;
    bytes -= here;
  }
  URMA_ASSERT(bytes == 0, "a slice lies inside its work");
}

void scatter(std::span<const Piece> pieces, uint32_t offset, std::span<const std::byte> data) {
  for (const Piece& piece : pieces) {
    if (data.empty()) return;
    if (offset >= piece.bytes) {
      offset -= piece.bytes;
      continue;
    }
    const size_t here = std::min<size_t>(piece.bytes - offset, data.size());
    std::memcpy(const_cast<std::byte*>(piece.data) + offset, data.data(), here);
    offset = 0;
    data = data.subspan(here);
  }
  URMA_ASSERT(data.empty(), "what is placed lies inside its buffer");
}

}  // namespace urma::jetty
