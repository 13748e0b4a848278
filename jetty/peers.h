#pragma once

#include "base/region.h"
#include "transport/channel.h"

namespace urma::jetty {

// What the transaction layer remembers of each peer: its channel while there is one, and the heads
// of the lists of what concerns it. Entries are found by the index of the PeerId; a later life in
// the same place starts afresh.
struct PeerState {
  static constexpr uint32_t none = UINT32_MAX;

  PeerId id;
  transport::Channel* channel = nullptr;
  transport::Facts facts{};        // the channel's
  uint32_t first_flow = none;      // Initiator
  uint32_t reads_out = 0;          // Initiator: reads that wait for their answer
  uint32_t offering = 0;           // Initiator: weights of flows with slices in the channel's line
  uint32_t small_flow = none;      // Initiator: the latest one with something small in line
  Time small_until{};              // Initiator: so long the others' slices are shorter
  uint32_t first_answer = none;    // Target
  uint32_t answers = 0;            // Target: owed
  uint32_t first_assembly = none;  // Target
  uint32_t assemblies = 0;         // Target: slices of which some packets have come
  uint32_t first_record = none;    // Target
  uint32_t records = 0;            // Target: of queues that used sends or immediates
  uint32_t latest_record = none;   // Target: the one that was asked for last
  uint32_t reads_in = 0;           // Target: reads being answered
  uint32_t parked = 0;             // Target: packets that are kept, or may have to be
  uint32_t contexts = 0;           // Target: of queues whose order is kept
  bool lost = false;               // and somebody was told
  Time deaf_until{};               // Target: its requests are dropped (Guesses)
  Time datagrams_deaf_until{};     // Target: what comes in its name without a channel, too
};

class PeerStates {
 public:
  explicit PeerStates(uint32_t peers) : states_(peers) {}

  uint32_t capacity() const { return static_cast<uint32_t>(states_.size()); }

  // The state of a peer that the transport knows.
  PeerState& at(PeerId id) {
    PeerState& state = states_[id.index];
    if (!(state.id == id)) [[unlikely]]
      begin(state, id);
    return state;
  }
  // Null when this life has never been heard of here, or is over.
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
