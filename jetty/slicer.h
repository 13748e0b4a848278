#pragma once

#include <span>

#include "jetty/flow.h"
#include "jetty/queues.h"
#include "urma/core/frame.h"
#include "urma/core/opcode.h"

namespace urma::jetty {

// Writes the headers of one packet of a slice behind what the frame's head holds, and names its
// payload where it lies. Pure: the same slice and index give the same packet, however often.
struct SlicePacket {
  const Berth& berth;
  const NotifyTarget& notify;     // of a work that has one
  std::span<const Piece> pieces;  // of the whole work
  const Slice& slice;
  uint32_t rc_id;
  uint32_t packet_bytes;  // payload of a full packet
  uint16_t index;
};
void write_packet(const SlicePacket& packet, TxFrame& frame);

// The same with a copy of its payload, into memory of `whole_bytes`.
uint32_t whole_bytes(const SlicePacket& packet, TaOpcode opcode);
void write_whole(const SlicePacket& packet, TaOpcode opcode, std::span<std::byte> out);
TaOpcode opcode_of(const SlicePacket& packet);

// The packet of a slice that was withdrawn: its TASSN, so that the target can step over it.
void write_filler(Tassn tassn, uint32_t rc_id, bool retry, TxFrame& frame);

// Names `bytes` bytes of `pieces` from `offset` on as the frame's payload.
void gather(std::span<const Piece> pieces, uint32_t offset, uint32_t bytes, TxFrame& frame);

// Copies as many bytes of `pieces` from `offset` on as `out` holds.
void copy_out(std::span<const Piece> pieces, uint32_t offset, std::span<std::byte> out);

// Copies `data` over `pieces` from `offset` on; the range lies inside.
void scatter(std::span<const Piece> pieces, uint32_t offset, std::span<const std::byte> data);

}  // namespace urma::jetty
