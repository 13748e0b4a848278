// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "jetty/flow.h"
#include "jetty/initiator/counters.h"
#include "jetty/staging.h"
#include "transport/channel.h"

namespace urma::jetty {

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

  // Works of at least this many bytes are copied past the caches.
  void copy_past_caches_from(uint64_t bytes) { past_caches_from_ = bytes; }
  uint64_t past_caches_from() const { return past_caches_from_; }

 private:
  // A notifying work sends a packet in any case. For up to this much data, sending it in that
  // packet costs less than holding the target's memory for a copy.
  static constexpr uint32_t most_beside_headers = 128;

  class Use;

  uint32_t copy_mapped(Flow& flow, Jfs& jfs, uint16_t lease, uint32_t from,
                       transport::Channel& channel);
  [[gnu::cold]] bool copy_staged(const Berth& berth, std::span<const Piece> pieces, uint32_t from,
                                 std::span<std::byte> theirs);
  uint32_t copy_data(const Berth& berth, std::span<const Piece> pieces, uint32_t from, Use& use,
                     uint32_t bytes);
  uint32_t operate(Jfs& jfs, uint16_t lease, Use& use);
  void count(uint64_t bytes) {
    ++counters_.copied;
    counters_.copied_bytes += bytes;
  }

  InitiatorCounters& counters_;
  Staging& staging_;
  uint64_t past_caches_from_ = UINT64_MAX;
};

}  // namespace urma::jetty
