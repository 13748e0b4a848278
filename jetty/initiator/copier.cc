// SPDX-License-Identifier: Apache-2.0
#include "jetty/initiator/copier.h"

#include <algorithm>

#include "jetty/atomics.h"
#include "jetty/slicer.h"

namespace urma::jetty {
namespace {

Rights right_for(Operation operation) {
  if (operation == Operation::atomic) return Rights::atomic;
  return operation == Operation::read ? Rights::read : Rights::write;
}

}  // namespace

// One use of mapped memory: by the segment that the flow used last, if this is it, or else by the
// channel, which prepares the next use.
class Copier::Use {
 public:
  Use(Flow& flow, transport::Channel& channel, const MemoryRange& range)
      : lane_(flow.used.lane), channel_(channel) {
    if (channel.watched()) at_ = flow.used.take(range);
    prepared_ = at_ != nullptr;
    if (!prepared_) [[unlikely]]
      at_ = channel.hold(range, flow.used);
  }

  // Returns null if the memory cannot be used. Then this use has ended already.
  std::byte* at() const { return at_; }
  // Ends it. Returns false if the memory was revoked meanwhile.
  bool let_go() { return prepared_ ? lane_.let_go() : channel_.let_go(); }

 private:
  const MappedLane& lane_;
  transport::Channel& channel_;
  std::byte* at_ = nullptr;
  bool prepared_;
};

uint32_t Copier::copy_mapped(Flow& flow, Jfs& jfs, uint16_t lease, uint32_t from,
                             transport::Channel& channel) {
  const Berth& berth = jfs.berth(lease);
  const uint32_t bytes = std::min(berth.bytes - from, slice_bytes);
  if (bytes == 0) return 0;
  Use use(flow, channel,
          {.address = berth.address + from,
           .bytes = bytes,
           .id = berth.token_id,
           .token = berth.token,
           .wanted = right_for(berth.operation)});
  if (use.at() == nullptr) return 0;
  if (berth.operation == Operation::atomic) return operate(jfs, lease, use);
  return copy_data(berth, jfs.pieces(lease), from, use, bytes);
}

uint32_t Copier::copy_data(const Berth& berth, std::span<const Piece> pieces, uint32_t from,
                           Use& use, uint32_t bytes) {
  const std::span<std::byte> theirs(use.at(), bytes);
  if (overlaps(pieces, theirs.data(), bytes)) [[unlikely]] {
    // The segment is our own and overlaps the buffers. Packets carry the data as it was before the
    // write.
    use.let_go();
    return 0;
  }
  const bool past_caches = berth.bytes >= past_caches_from_ && !berth.staged;
  if (berth.staged) [[unlikely]] {
    if (!copy_staged(berth, pieces, from, theirs)) {
      // The packets cannot be made either, which ends the work.
      use.let_go();
      return 0;
    }
  } else if (berth.operation == Operation::read) {
    past_caches ? scatter_past_caches(pieces, from, theirs) : scatter(pieces, from, theirs);
  } else {
    past_caches ? copy_out_past_caches(pieces, from, theirs) : copy_out(pieces, from, theirs);
  }
  // If the memory was revoked meanwhile, the data is sent again in packets, and the owner of the
  // memory decides.
  if (!use.let_go()) return 0;
  counters_.copied_past_caches += past_caches;
  count(bytes);
  return bytes;
}

// Copies between an accelerator's memory and the mapped memory.
bool Copier::copy_staged(const Berth& berth, std::span<const Piece> pieces, uint32_t from,
                         std::span<std::byte> theirs) {
  if (berth.operation != Operation::read) return staging_.copy_out(pieces, from, theirs);
  const uint64_t owner = staging_.next_owner();
  const bool begun = staging_.scatter(pieces, from, theirs, owner);
  return staging_.finish(owner) && begun;
}

// Executes an atomic, if its segment leaves atomics to processors.
uint32_t Copier::operate(Jfs& jfs, uint16_t lease, Use& use) {
  const Berth& berth = jfs.berth(lease);
  if (reinterpret_cast<uintptr_t>(use.at()) % berth.bytes != 0) [[unlikely]] {
    // The atomic is sent in a packet, and the owner of the memory refuses it.
    use.let_go();
    return 0;
  }
  jfs.fetched(lease, execute({.what = berth.atomic,
                              .update = berth.update,
                              .bytes = berth.bytes,
                              .operand = berth.immediate,
                              .expected = jfs.values(lease).expected},
                             use.at()));
  // The memory was revoked: the owner may have replaced it before or after the atomic was executed.
  if (!use.let_go()) jfs.doubt(lease);
  count(berth.bytes);
  return berth.bytes;
}

}  // namespace urma::jetty
