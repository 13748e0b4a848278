// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "jetty/atomics.h"
#include "jetty/flow.h"
#include "jetty/initiator/counters.h"
#include "jetty/slicer.h"
#include "jetty/staging.h"
#include "transport/channel.h"

namespace urma::jetty {

// Returns the right that a segment must grant to such a work.
inline Rights right_for(Operation operation) {
  if (operation == Operation::atomic) return Rights::atomic;
  return operation == Operation::read ? Rights::read : Rights::write;
}

// A part of a write or read of mapped memory that is copied at once.
struct CopiedPart {
  bool reads;
  bool staged;                    // some of the local memory is an accelerator's
  uint64_t of_bytes;              // of the whole work
  std::span<const Piece> pieces;  // its local memory
  uint32_t from;                  // where the part begins in it
};

// The outcome of an atomic on mapped memory.
struct Operated {
  bool done = false;      // or it must be sent in a packet, whose answer says why
  bool doubtful = false;  // the memory may have been revoked before it was executed
  uint64_t fetched = 0;
};

// Carries out works on mapped memory without a packet: copies between the buffers of a work and a
// peer's segment, and executes atomics. It keeps nothing about works, and does not complete them.
// The Initiator owns it.
class Copier {
 public:
  Copier(InitiatorCounters& counters, Staging& staging) : counters_(counters), staging_(staging) {}

  // Returns whether data of this work may be copied, and is not sent beside its notification.
  static bool copies(const Berth& berth) {
    const bool beside = notifies(berth) && berth.bytes <= most_beside_headers;
    return is_mapped(berth) && berth.bytes > 0 && !beside;
  }
  // Copies the slice of a work that begins at `from`, or executes the atomic. Returns its bytes, or
  // 0 if it must be sent in packets, whose answer says why. The last part of a notifying write is
  // sent in a packet anyway, after its data. `flow`: towards the peer of this channel.
  uint32_t copy(Flow& flow, Jfs& jfs, uint16_t lease, uint32_t from, transport::Channel& channel) {
    return copies(jfs.berth(lease)) ? copy_mapped(flow, jfs, lease, from, channel) : 0;
  }

  // The same for a work that is described by its parts: copies to or from `range`, or executes an
  // atomic on it. `copy_part` returns false if the data must be sent in packets.
  bool copy_part(const CopiedPart& part, const MemoryRange& range, Flow& flow,
                 transport::Channel& channel);
  Operated operate(const AtomicCall& call, MemoryRange range, Flow& flow,
                   transport::Channel& channel);

  // Works of at least this many bytes are copied past the caches.
  void copy_past_caches_from(uint64_t bytes) { past_caches_from_ = bytes; }
  uint64_t past_caches_from() const { return past_caches_from_; }

 private:
  // A notifying work sends a packet in any case. For up to this much data, sending it in that
  // packet costs less than holding the target's memory for a copy.
  static constexpr uint32_t most_beside_headers = 128;

  uint32_t copy_mapped(Flow& flow, Jfs& jfs, uint16_t lease, uint32_t from,
                       transport::Channel& channel);
  [[gnu::cold]] bool copy_staged(bool reads, std::span<const Piece> pieces, uint32_t from,
                                 std::span<std::byte> theirs);
  void count(uint64_t bytes) {
    InitiatorCounters& counters = counters_;
    ++counters.copied;
    counters.copied_bytes += bytes;
  }

  InitiatorCounters& counters_;
  Staging& staging_;
  uint64_t past_caches_from_ = UINT64_MAX;
};

// One use of mapped memory: by the segment that the flow used last, if this is it, or else by the
// channel, which prepares the next use.
class MappedUse {
 public:
  [[gnu::always_inline]] MappedUse(Flow& flow, transport::Channel& channel,
                                   const MemoryRange& range)
      : lane_(flow.used.lane), channel_(channel) {
    if (channel.watched()) at_ = flow.used.take(range);
    prepared_ = at_ != nullptr;
    if (!prepared_) [[unlikely]]
      at_ = hold(channel, range, flow.used);
  }

  // Returns null if the memory cannot be used. Then this use has ended already.
  std::byte* at() const { return at_; }
  // Ends it. Returns false if the memory was revoked meanwhile.
  [[gnu::always_inline]] bool let_go() { return prepared_ ? lane_.let_go() : channel_.let_go(); }

 private:
  // Takes the range by value, so that it need not be in memory where it is made.
  [[gnu::cold, gnu::noinline]] static std::byte* hold(transport::Channel& channel,
                                                      MemoryRange range, PreparedSegment& used) {
    return channel.hold(range, used);
  }

  const MappedLane& lane_;
  transport::Channel& channel_;
  std::byte* at_ = nullptr;
  bool prepared_;
};

[[gnu::always_inline]] inline bool Copier::copy_part(const CopiedPart& part,
                                                     const MemoryRange& range, Flow& flow,
                                                     transport::Channel& channel) {
  MappedUse use(flow, channel, range);
  if (use.at() == nullptr) return false;
  const std::span<std::byte> theirs(use.at(), range.bytes);
  if (overlaps(part.pieces, theirs.data(), theirs.size())) [[unlikely]] {
    // The segment is our own and overlaps the buffers. Packets carry the data as it was before the
    // write.
    use.let_go();
    return false;
  }
  const bool past_caches = part.of_bytes >= past_caches_from_ && !part.staged;
  if (part.staged) [[unlikely]] {
    if (!copy_staged(part.reads, part.pieces, part.from, theirs)) {
      // The packets cannot be made either, which ends the work.
      use.let_go();
      return false;
    }
  } else if (past_caches) [[unlikely]] {
    part.reads ? scatter_past_caches(part.pieces, part.from, theirs)
               : copy_out_past_caches(part.pieces, part.from, theirs);
  } else {
    part.reads ? scatter(part.pieces, part.from, theirs) : copy_out(part.pieces, part.from, theirs);
  }
  // If the memory was revoked meanwhile, the data is sent again in packets, and the owner of the
  // memory decides.
  if (!use.let_go()) return false;
  if (past_caches) [[unlikely]]
    ++counters_.copied_past_caches;
  count(theirs.size());
  return true;
}

}  // namespace urma::jetty
