// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "base/flat_map.h"
#include "base/slab.h"
#include "jetty/peers.h"
#include "urma/core/ids.h"

namespace urma::jetty {

// Records, at the target, which of the last W slices of one initiator queue were executed or
// withdrawn. It ensures that a send, an immediate or an atomic is executed once, even if a channel
// ends between execution and answer and the slice arrives again on another one (docs/protocol.md).
// It takes two bits per TASSN. The window moves with the newest TASSN seen; no message is needed to
// retire entries. Only the thread that runs the engine calls it.
class ExecutionRecord {
 public:
  static constexpr uint32_t none = UINT32_MAX;  // no context, no results
  static constexpr uint32_t window = 1024;      // W: the initiator has no older slice outstanding

  enum class Mark : uint8_t { none, executing, executed, withdrawn };

  // `first`: wire bits of the first TASSN that was seen.
  explicit ExecutionRecord(uint32_t first) : newest_(Tassn::first(first)) {}

  Tassn unwrap(uint32_t wire) const { return Tassn::unwrap(newest_, wire); }
  // Moves the window. Returns false if the slice is too old to tell whether it was executed; then
  // it must not be executed.
  bool see(Tassn tassn);
  // `mark` and `set` are only for numbers that `see` accepted.
  Mark mark(Tassn tassn) const;
  void set(Tassn tassn, Mark mark);
  Tassn newest() const { return newest_; }
  // The index of the queue's sequence context, if it has one (Sequences).
  uint32_t context = none;
  // The index of the results of the queue's atomics, if it had any (AtomicResults).
  uint32_t results = none;
  // The fast path for slices that arrive in order and are executed immediately.
  void execute_next() {
    ++newest_;
    set(newest_, Mark::executed);
  }

 private:
  static constexpr uint32_t per_word = 32;

  std::array<uint64_t, window / per_word> marks_{};
  Tassn newest_;
};

// The records of all peers' queues. A queue gets a record with its first slice that must not be
// executed twice. Only the thread that runs the engine calls it.
class ExecutionRecords {
 public:
  // Each peer may have `share` records, and as many of the `common` further ones as it leaves free.
  ExecutionRecords(uint32_t common, uint32_t share, PeerStates& peers)
      : peers_(peers),
        common_(common),
        share_(share),
        slab_(common + share * peers.capacity()),
        by_queue_(slab_.capacity()) {}

  // Returns null if the queue has no record.
  ExecutionRecord* find(PeerId peer, uint32_t rc_id);
  // Returns null if this peer may have no further record.
  ExecutionRecord* find_or_create(PeerId peer, uint32_t rc_id, uint32_t tassn);
  // This incarnation of the peer is over, so no packet of it can arrive any more. Calls `each` with
  // its records.
  template <class Each>
  void forget(PeerState& peer, Each&& each);
  uint32_t size() const { return slab_.size(); }
  uint32_t capacity() const { return slab_.capacity(); }

 private:
  struct Entry {
    // Needed because clang has no parenthesised aggregate initialisation before version 16.
    Entry(const ExecutionRecord& r, uint32_t p, uint32_t q, uint32_t n)
        : record(r), peer_index(p), rc_id(q), next_of_peer(n) {}
    ExecutionRecord record;
    uint32_t peer_index;
    uint32_t rc_id;
    uint32_t next_of_peer;
  };
  static uint64_t key(uint32_t peer_index, uint32_t rc_id) {
    return uint64_t{peer_index} << 32 | rc_id;
  }

  bool may_have_another(const PeerState& peer) const;

  PeerStates& peers_;
  uint32_t common_;  // free records beyond the shares
  const uint32_t share_;
  Slab<Entry> slab_;
  FlatMap<uint64_t> by_queue_;
};

template <class Each>
void ExecutionRecords::forget(PeerState& peer, Each&& each) {
  for (uint32_t i = peer.first_record; i != PeerState::none;) {
    Entry& entry = slab_.at(i);
    i = entry.next_of_peer;
    each(entry.record);
    by_queue_.erase(key(entry.peer_index, entry.rc_id));
    slab_.destroy(&entry);
  }
  peer.first_record = peer.latest_record = PeerState::none;
  if (peer.records > share_) common_ += peer.records - share_;
  peer.records = 0;
}

}  // namespace urma::jetty
