#pragma once

#include "base/slab.h"
#include "jetty/target/execution_record.h"
#include "ordering/execute_gate.h"

namespace urma::jetty {

// The sequence contexts (UB 7.3) of all peers' queues: each holds the order of one queue's slices,
// and the slices that wait for their turn. A context lasts as long as its record, that is, as long
// as the peer's incarnation. The Target owns it; only the thread that runs the engine uses it.
class Sequences {
 public:
  static constexpr uint32_t none = ExecutionRecord::none;

  struct Sequence {
    explicit Sequence(Tassn first) : gate(first) {}
    ordering::ExecuteGate gate;
    uint32_t first_parked = none;  // parked assemblies, in order
    uint32_t last_parked = none;
  };

  explicit Sequences(uint32_t capacity) : slab_(capacity) {}

  // Gives the record a context if it has none. Returns false if none is free, or if the peer would
  // leave fewer to others than it has.
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
