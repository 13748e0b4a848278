// SPDX-License-Identifier: Apache-2.0
#include "jetty/initiator/copier.h"

#include <algorithm>

namespace urma::jetty {

uint32_t Copier::copy_mapped(Flow& flow, Jfs& jfs, uint16_t lease, uint32_t from,
                             transport::Channel& channel) {
  const Berth& berth = jfs.berth(lease);
  const uint32_t bytes = std::min(berth.bytes - from, slice_bytes);
  if (bytes == 0) return 0;
  const MemoryRange range{.address = berth.address + from,
                          .bytes = bytes,
                          .id = berth.token_id,
                          .token = berth.token,
                          .wanted = right_for(berth.operation)};
  if (berth.operation == Operation::atomic) {
    const AtomicCall call{.what = berth.atomic,
                          .update = berth.update,
                          .bytes = bytes,
                          .operand = berth.immediate,
                          .expected = jfs.values(lease).expected};
    const Operated end = operate(call, range, flow, channel);
    if (!end.done) return 0;
    jfs.fetched(lease, end.fetched);
    if (end.doubtful) jfs.doubt(lease);
    return bytes;
  }
  const CopiedPart part{.reads = berth.operation == Operation::read,
                        .staged = berth.staged,
                        .of_bytes = berth.bytes,
                        .pieces = jfs.pieces(lease),
                        .from = from};
  return copy_part(part, range, flow, channel) ? bytes : 0;
}

// Copies between an accelerator's memory and the mapped memory.
bool Copier::copy_staged(bool reads, std::span<const Piece> pieces, uint32_t from,
                         std::span<std::byte> theirs) {
  if (!reads) return staging_.copy_out(pieces, from, theirs);
  const uint64_t owner = staging_.next_owner();
  const bool begun = staging_.scatter(pieces, from, theirs, owner);
  return staging_.finish(owner) && begun;
}

// Executes an atomic, if its segment leaves atomics to processors.
Operated Copier::operate(const AtomicCall& call, MemoryRange range, Flow& flow,
                         transport::Channel& channel) {
  MappedUse use(flow, channel, range);
  if (use.at() == nullptr) return {};
  if (reinterpret_cast<uintptr_t>(use.at()) % call.bytes != 0) [[unlikely]] {
    // The atomic is sent in a packet, and the owner of the memory refuses it.
    use.let_go();
    return {};
  }
  const uint64_t fetched = execute(call, use.at());
  // The memory was revoked: the owner may have replaced it before or after the atomic was executed.
  const bool doubtful = !use.let_go();
  count(call.bytes);
  return {.done = true, .doubtful = doubtful, .fetched = fetched};
}

}  // namespace urma::jetty
