// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <span>

#include "base/assert.h"
#include "base/copy.h"
#include "jetty/flow.h"
#include "jetty/queues.h"
#include "transport/channel.h"
#include "wire/frame.h"
#include "wire/opcode.h"

namespace urma::jetty {

// One packet of a slice. `write_packet` appends its headers to the frame's head, and refers to its
// payload in the application's memory. The function is pure: the same slice and index always give
// the same packet.
struct SlicePacket {
  const Berth& berth;
  const NotifyTarget& notify;     // valid for a write with notification
  uint64_t expected = 0;          // of a compare_swap
  std::span<const Piece> pieces;  // of the whole work
  Tassn tassn;
  uint32_t offset = 0;  // of the slice, in the work
  uint32_t bytes = 0;   // of the slice
  bool last = false;    // whether it is the last slice of its work
  bool retry = false;
  Order order = Order::none;
  bool allocate = false;    // asks the target to keep order from this slice on
  bool in_context = false;  // the target keeps the order of its queue
  uint32_t rc_id = 0;
  uint32_t packet_bytes = 0;  // payload of a full packet
  uint16_t index = 0;
  const std::byte* staged = nullptr;  // the packet's payload, if that is not in `pieces`
};
void write_packet(const SlicePacket& packet, TxFrame& frame);
// Returns how much of the work's memory the packet contains.
uint32_t payload_of(const SlicePacket& packet);

// The same for a packet of a write or a send, behind the first one. `before`: the frame of an
// earlier packet of the slice, with as much in front of its headers.
void write_further_packet(const SlicePacket& packet, const TxFrame& before, TxFrame& frame);

// Writes the only packet of a slice, with a copy of its payload, into memory of the channel.
// Returns false if the channel has none.
bool write_straight(const SlicePacket& packet, transport::Channel& channel);

// The same for the only packet of a message that asks for no order, of a queue without a sequence
// context.
bool write_message(const Berth& berth, std::span<const Piece> pieces, Tassn tassn, uint32_t rc_id,
                   transport::Channel& channel);

// Writes the packet of a cancelled slice: its TASSN, so that the target can pass over it.
void write_filler(Tassn tassn, uint32_t rc_id, bool retry, TxFrame& frame);

// Calls `each` with the parts of `pieces` that hold `bytes` bytes from `offset` on.
template <class Each>
void for_parts(std::span<const Piece> pieces, uint32_t offset, size_t bytes, Each&& each) {
  for (const Piece& piece : pieces) {
    if (bytes == 0) return;
    if (offset >= piece.bytes) {
      offset -= piece.bytes;
      continue;
    }
    const auto here = static_cast<uint32_t>(std::min<size_t>(piece.bytes - offset, bytes));
    each(piece.data + offset, here);
    offset = 0;
    bytes -= here;
  }
  URMA_ASSERT(bytes == 0, "a slice lies inside its work");
}

// Makes `bytes` bytes of `pieces`, from `offset` on, the frame's payload.
void gather(std::span<const Piece> pieces, uint32_t offset, uint32_t bytes, TxFrame& frame);

// Copies as many bytes of `pieces`, from `offset` on, as `out` holds.
void copy_out_pieces(std::span<const Piece> pieces, uint32_t offset, std::span<std::byte> out);
inline void copy_out(std::span<const Piece> pieces, uint32_t offset, std::span<std::byte> out) {
  if (pieces.size() != 1) return copy_out_pieces(pieces, offset, out);
  copy_bytes(out.data(), pieces[0].data + offset, out.size());
}

// Payload of at most this size is copied behind the headers, which costs less than each further
// piece of a frame costs the ICRC and the system.
inline constexpr uint32_t most_copied_behind_headers = 64;
// Makes it the frame's payload, as `gather` does, or copies it there.
inline void add_payload(std::span<const Piece> pieces, uint32_t offset, uint32_t bytes,
                        TxFrame& frame) {
  if (bytes > most_copied_behind_headers) return gather(pieces, offset, bytes, frame);
  copy_out(pieces, offset, {frame.head + frame.head_bytes, bytes});
  frame.head_bytes = static_cast<uint8_t>(frame.head_bytes + bytes);
}

// Copies `data` to `pieces`, from `offset` on; the pieces are long enough for it.
void scatter_pieces(std::span<const Piece> pieces, uint32_t offset,
                    std::span<const std::byte> data);
inline void scatter(std::span<const Piece> pieces, uint32_t offset,
                    std::span<const std::byte> data) {
  if (pieces.size() != 1) return scatter_pieces(pieces, offset, data);
  copy_bytes(const_cast<std::byte*>(pieces[0].data) + offset, data.data(), data.size());
}

// As copy_out and scatter, for data that should not go into the caches (copy_past_caches).
void copy_out_past_caches(std::span<const Piece> pieces, uint32_t offset, std::span<std::byte> out);
void scatter_past_caches(std::span<const Piece> pieces, uint32_t offset,
                         std::span<const std::byte> data);

}  // namespace urma::jetty
