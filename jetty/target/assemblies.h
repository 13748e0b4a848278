// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/flat_map.h"
#include "base/slab.h"
#include "jetty/peers.h"
#include "jetty/target/assembly.h"
#include "transport/upper.h"

namespace urma::jetty {

// Stores the slices of which more packets are to arrive, or whose turn is to come, and finds them
// by a packet that belongs to them, by their peer, and by the Jetty or the memory that they need.
// It does not know how a slice is executed or answered, nor why it waits. The Target owns it; only
// the thread that runs the engine calls it.
class Assemblies {
 public:
  Assemblies(uint32_t capacity, PeerStates& peers)
      : peers_(peers), slab_(capacity), by_slice_(capacity) {}

  // Returns how many more assemblies can be stored.
  uint32_t room() const { return slab_.capacity() - slab_.size(); }

  // Returns the slice that this packet belongs to, or null if it is not stored.
  Assembly* find(const transport::Received& packet) {
    const uint32_t index = by_slice_.find(key(packet.channel, packet.slice));
    if (index == by_slice_.none) return nullptr;
    latest_ = index;
    return &slab_.at(index);
  }
  // As `find`, but looks only at the slice that was created or found last.
  Assembly* latest(const transport::Received& packet) {
    if (!slab_.live(latest_)) return nullptr;
    Assembly& one = slab_.at(latest_);
    return one.channel == packet.channel && one.slice == packet.slice ? &one : nullptr;
  }
  // Stores the slice. There must be room.
  Assembly& create(const Assembly& assembly);
  void erase(Assembly& assembly);

  // For lists of assemblies.
  Assembly& at(uint32_t index) { return slab_.at(index); }
  uint32_t index_of(const Assembly& assembly) const { return slab_.index_of(&assembly); }
  // Iterate over the slices of one peer; return null behind the last one. Before an assembly is
  // erased, ask for the next one.
  Assembly* first_of(const PeerState& peer) { return at_or_null(peer.first_assembly); }
  Assembly* next_of(const Assembly& assembly) { return at_or_null(assembly.next); }

  // Call it before the Jetty is destroyed. Slices that are addressed to it, or hold its receive
  // slots or permits, give these back, and are refused when the rest of them has arrived.
  [[gnu::cold]] void detach(const Jetty& jetty);
  // No message is placed in this memory any more: messages that were being placed there are
  // refused.
  [[gnu::cold]] void flush(const std::byte* base, uint64_t bytes);

 private:
  static uint64_t key(uint32_t channel, uint32_t slice) { return uint64_t{channel} << 32 | slice; }
  Assembly* at_or_null(uint32_t index) {
    return index == Assembly::none ? nullptr : &slab_.at(index);
  }

  PeerStates& peers_;
  Slab<Assembly> slab_;
  FlatMap<uint64_t> by_slice_;
  uint32_t latest_ = 0;
};

}  // namespace urma::jetty
