#pragma once

#include "base/slab.h"
#include "jetty/target/execution_record.h"
#include "ordering/execute_gate.h"

namespace urma::jetty {

// The sequence contexts (UB 7.3) of all peers' queues: the order of a queue's slices, and those
// that wait for their turn, in order. Like its record, it lasts as long as the peer's life.
class Sequences {
 public:
  static constexpr uint32_t none = UINT32_MAX;

  struct Sequence {
    explicit Sequence(Tassn first) : gate(first) {}
    ordering::ExecuteGate gate;
    uint32_t first_parked = none;  // assemblies, in order
    uint32_t last_parked = none;
  };

  explicit Sequences(uint32_t capacity) : slab_(capacity) {}

  // The record's own, made if it has none. False: none is free, for a peer may have as many as it
  // leaves to others.
  bool give(ExecutionRecord& record, PeerState& peer, Tassn first) {
    if (record.context != none) return true;
    if (peer.contexts >= slab_.capacity() - slab_.size()) return false;
    record.context = slab_.index_of(slab_.create(first));
    ++peer.contexts;
    return true;
  }
  void take_back(ExecutionRecord& record, PeerState& peer) {
    if (record.context == none) return;
    slab_.destroy(&slab_.at(record.context));
    record.context = none;
    --peer.contexts;
  }
  Sequence& at(uint32_t index) { return slab_.at(index); }

 private:
  Slab<Sequence> slab_;
};

}  // namespace urma::jetty
