// SPDX-License-Identifier: Apache-2.0
#include "jetty/jfr.h"

#include <algorithm>

#include "base/accelerator_memory.h"

namespace urma::jetty {

Jfr::Jfr(uint16_t slots) : Leases(slots, Layout::bytes({.slots = slots})) {}

size_t Jfr::post(std::span<const Buffer> buffers, uint64_t tag) {
  if (buffers.size() > max_buffers || vacant() == 0) return 0;
  const uint16_t lease = take_vacant();
  ReceiveSlot& slot = begin<ReceiveSlot>()[lease];
  slot = {.tag = tag, .bytes = 0, .piece_count = 0, .staged = false, .piece = {}};
  for (const Buffer& buffer : buffers) {
    if (buffer.bytes == 0) continue;
    // No message is longer, so the rest of the buffer is not used.
    const auto bytes = static_cast<uint32_t>(std::min<uint64_t>(buffer.bytes, max_send_bytes));
    const Piece piece{static_cast<const std::byte*>(buffer.data), bytes};
    slot.staged = slot.staged || AcceleratorMemory::has(buffer.data);
    if (slot.piece_count == 0) slot.piece = piece;
    if (buffers.size() > 1) all_pieces(lease)[slot.piece_count] = piece;
    ++slot.piece_count;
    slot.bytes += bytes;
  }
  stage(lease);
  publish();
  return 1;
}

void Jfr::polled(uint16_t lease) {
  if (lease != none) return give_back(lease);
  touch();
  counter().store(counter().load(std::memory_order_relaxed) + 1, std::memory_order_release);
}

std::span<const Piece> Jfr::pieces(uint16_t lease) const {
  const ReceiveSlot& named = slot(lease);
  if (named.piece_count <= 1) return {&named.piece, named.piece_count};
  return {all_pieces(lease), named.piece_count};
}

}  // namespace urma::jetty
