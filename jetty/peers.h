// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "base/region.h"
#include "transport/channel.h"

namespace urma::jetty {

// The transaction layer's state of one peer: its channel while there is one, and the heads of lists
// of its flows, answers and slices. Entries are found by the index of the PeerId; a later
// incarnation with the same index starts with an empty entry. Only the thread that runs the engine
// calls it.
struct PeerState {
  static constexpr uint32_t none = UINT32_MAX;

  PeerId id;
  transport::Channel* channel = nullptr;
  transport::Facts facts{};    // copied from the channel
  uint32_t first_flow = none;  // Initiator
  uint32_t reads_out = 0;      // Initiator: reads that wait for their answer
  // Initiator: the sum of weights of the flows that have slices in the channel's queue; of usual
  // and of urgent ones
  std::array<uint32_t, 2> offering{};
  uint32_t small_flow = none;      // Initiator: the latest flow with a small work in line
  Time small_until{};              // Initiator: until then slices of other flows are shorter
  uint32_t first_answer = none;    // Target
  uint32_t answers = 0;            // Target: owed
  uint32_t first_assembly = none;  // Target
  uint32_t assemblies = 0;         // Target: slices of which some packets have arrived
  uint32_t first_record = none;    // Target
  uint32_t records = 0;            // Target: records of queues that used sends or immediates
  uint32_t latest_record = none;   // Target: the record that was looked up last
  uint32_t reads_in = 0;           // Target: reads being answered
  uint32_t parked = 0;             // Target: packets that are parked, or for which room is reserved
  uint32_t contexts = 0;           // Target: sequence contexts of its queues
  bool waits_for_carrier = false;  // Initiator: the device had no room for slices to it
  bool writes_at_once = false;     // Initiator: as the channel's function of this name
  bool lost = false;               // it was lost, and an event has been raised
  Time ignored_until{};            // Target: until then its requests are dropped (Refusals)
  Time datagrams_ignored_until{};  // Target: until then datagrams in its name are dropped, too
};

// Keeps one `PeerState` for each peer that the transport knows, at the peer's index. It does not
// know what the initiator and the target store in it, and begins with an empty one for each
// incarnation. Transactions owns it; only the thread that runs the engine calls it.
class PeerStates {
 public:
  explicit PeerStates(uint32_t peers) : states_(peers) {}

  uint32_t capacity() const { return static_cast<uint32_t>(states_.size()); }

  // Returns the state of a peer that the transport knows.
  [[gnu::always_inline]] PeerState& at(PeerId id) {
    PeerState& state = states_[id.index];
    if (!(state.id == id)) [[unlikely]]
      begin(state, id);
    return state;
  }
  // Returns null if this incarnation has no state yet, or is over.
  PeerState* find(PeerId id) {
    if (id.index >= states_.size()) return nullptr;
    PeerState& state = states_[id.index];
    return state.id == id ? &state : nullptr;
  }
  void forget(PeerId id) { states_[id.index] = PeerState{}; }

 private:
  [[gnu::cold, gnu::noinline]] static void begin(PeerState& state, PeerId id) {
    state = PeerState{.id = id};
  }

  RegionArray<PeerState> states_;
};

}  // namespace urma::jetty
