// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "base/slab.h"
#include "jetty/parking.h"
#include "jetty/target/assemblies.h"
#include "jetty/target/execution_record.h"
#include "ordering/execute_gate.h"

namespace urma::jetty {

// The sequence contexts (UB 7.3) of all peers' queues: each decides which slice of its queue may be
// executed now, and keeps the packets of slices that arrived before their turn, which are *parked*.
// A context lasts as long as its record, that is, as long as the peer's incarnation. It does not
// know how a slice is executed or answered. The Target owns it; only the thread that runs the
// engine calls it.
class Sequences {
 public:
  static constexpr uint32_t none = ExecutionRecord::none;

  // `packets`: how many packets of parked slices there may be.
  Sequences(uint32_t contexts, uint32_t packets, PeerStates& peers, Assemblies& assemblies)
      : peers_(peers), assemblies_(assemblies), slab_(contexts), parking_(packets) {}

  // Returns how many slices are parked.
  uint32_t parked() const { return parked_; }

  // Gives the slice's queue a context, if the request asks for one. Returns false, and sets the
  // verdict, if none is free, or if the request names one that does not exist. `record`: that of
  // the queue; may be null.
  bool prepare(Assembly& assembly, ExecutionRecord* record, const Btah& request);
  // The first packet of the slice has arrived, which shows its order.
  void note(Assembly& assembly, const ExecutionRecord& record, const Btah& request);
  // Returns whether the slice may be executed now. If not, sets the verdict: room is reserved for
  // its packets (parked), or it must be sent again (not_ready).
  bool its_turn(Assembly& assembly, const transport::Received& packet,
                const ParsedRequest& request) {
    if (assembly.context == none || assembly.order != Order::strong) return true;
    if (slab_.at(assembly.context).gate.open(assembly.number)) return true;
    hold_back(assembly, packet, request);
    return false;
  }

  // Parks a stored slice for which room is reserved. `packet` is its first one to arrive.
  [[gnu::cold]] void park(Assembly& assembly, const transport::Received& packet,
                          const ParsedRequest& request);
  // A further packet of a parked slice has arrived.
  [[gnu::cold]] void keep(Assembly& assembly, const transport::Received& packet,
                          const ParsedRequest& request);
  // The slice is not parked any more, and its packets are dropped.
  [[gnu::cold]] void leave(Assembly& assembly);
  // The slice is not parked any more: calls `place` with its packets, oldest first, until it
  // returns true, and drops the rest, because a peer may have sent more packets than the slice has.
  // Returns whether `place` has returned true.
  template <class Place>
  bool unpark(Assembly& assembly, Place&& place);
  // Returns the parked slice of this number, or null.
  Assembly* find(const ExecutionRecord& record, Tassn number);

  // The slice has been executed or refused: slices behind it need not wait for it, unless it will
  // be sent again. Then look at `next`.
  void pass(const Assembly& assembly);
  // The slice of this number will never be executed.
  void pass(const ExecutionRecord& record, Tassn number) {
    if (record.context != none) slab_.at(record.context).gate.pass(number);
  }
  // Returns a parked slice of this context whose turn has come, or null.
  Assembly* next(uint32_t context);

  // The record ends. None of its slices may be parked.
  void forget(ExecutionRecord& record, PeerState& peer);

 private:
  struct Sequence {
    explicit Sequence(Tassn first) : gate(first) {}
    ordering::ExecuteGate gate;
    uint32_t first_parked = none;  // parked assemblies, in order
    uint32_t last_parked = none;
  };

  bool give(ExecutionRecord& record, PeerState& peer, Tassn first);
  void hold_back(Assembly& assembly, const transport::Received& packet,
                 const ParsedRequest& request);

  PeerStates& peers_;
  Assemblies& assemblies_;
  Slab<Sequence> slab_;
  Parking parking_;
  uint32_t parked_ = 0;
};

template <class Place>
bool Sequences::unpark(Assembly& assembly, Place&& place) {
  Kept kept = std::exchange(assembly.kept, Kept{.reserved = assembly.kept.reserved});
  leave(assembly);
  bool done = false;
  const auto take = [&](const transport::Received& packet) { done = place(packet); };
  while (!done && parking_.take(kept, take)) {
  }
  parking_.release(kept);
  return done;
}

}  // namespace urma::jetty
