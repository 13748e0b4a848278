// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>

#include "base/entropy.h"
#include "base/flat_map.h"
#include "base/slab.h"
#include "base/timer_wheel.h"
#include "transport/channel.h"
#include "transport/settings.h"
#include "wire/tp_headers.h"

namespace urma::transport {

class PacketChannel;
class Routes;

// One incarnation of a process, and the state of making and ending its channel. `Peers` owns it and
// the fields down to `asked_for`. Each of the classes named below gives the fields that follow
// their meaning; what another class writes too is said beside them.
struct Peer {
  static constexpr uint32_t none = UINT32_MAX;

  Eid eid;      // zero until it is known
  Endpoint at;  // where set-up messages to it go, if it has no routes
  uint32_t next_of_eid = none;
  Incarnation life{};                // zero until it is known
  PacketChannel* channel = nullptr;  // of the medium; null while there is none
  Routes* routes = nullptr;          // of `PeerPaths`; null if both ends have one address
  uint32_t number = 0;        // of this acquaintance; a forgotten peer that returns gets another
  uint32_t their_number = 0;  // the peer's number of it; 0 if not received yet
  bool asked_for = false;     // a caller of `Transport::know` holds its PeerId

  // Links.
  bool spoke = false;        // packets came on a channel, so works of it may have executed here
  bool notes_paths = false;  // it accepts a list of paths without an OPEN

  // Admission: the latest set-up that the peer began. `Peers` counts those that it answered.
  bool answered_open = false;  // it was accepted, and nothing has come on the channel yet
  uint32_t attempt_seen = 0;   // of its latest OPEN

  // Closings. The first is counted by `Peers`; Openings and Links end the other, if the channel is
  // opened again or has gone.
  uint8_t goodbyes = 0;  // CLOSEs still to be sent because the device closes
  uint8_t closes = 0;    // CLOSEs still to be sent because the channel is idle

  // Openings: the latest set-up that this device began. Links ends it, because a channel was made
  // or the one in use is to be kept.
  bool opening = false;
  bool may_retry = false;  // the next RETRY is answered immediately
  bool refused = false;    // the peer answered, but did not accept
  bool given_up = false;   // no channel was made
  Why why_not = Why::unreachable;
  uint16_t tries = 0;    // OPENs sent, each over another path
  uint32_t attempt = 0;  // of the latest OPEN
  // Ours: of the channel, or of the one that is asked for. Admission chooses them, too.
  Tpn tpn{};
  uint32_t first_psn = 0;
  Tpn doubted_tpn{};  // of the channel in use while another one is asked for
  uint32_t doubted_psn = 0;
  std::optional<Retransmission> chosen;  // instead of Settings::retransmission
  Time opened_at{};
  // Both belong to the latest OPEN, or to a CLOSE for idleness of Closings: only one is
  // outstanding.
  uint64_t cookie = 0;  // for the OPEN to bring back, or for CLOSED to repeat
  Time sent_at{};

  // Links, too, but here it leaves no gap: when its channel was made; without a channel, when
  // something last came on the latest one.
  Time contact_at{};

  // Returns whether one of its routes leads there.
  bool has_route_to(const Endpoint& there) const;
  // Returns whether set-up messages or packets to it go there.
  bool is_reached_at(const Endpoint& there) const { return at == there || has_route_to(there); }
};

// Returns how packets to `peer` are retransmitted; the default of the device if `peer` is null.
inline const Retransmission& mode_for(const Peer* peer, const Settings& settings) {
  return peer != nullptr && peer->chosen ? *peer->chosen : settings.retransmission;
}

// The peers that a device knows, by handle and by EID, and one timer for each. It decides which
// peer an address, EID and incarnation name, and which peer can be forgotten. It does not know how
// channels are made, ended or reported: `Links` ends a peer before it is destroyed here. Only the
// thread that runs the engine calls it.
class Peers {
 public:
  Peers(const Settings& settings, Entropy& entropy);

  // ---- by name

  // Returns null if this incarnation is over.
  Peer* find(PeerId id) { return peers_.find(id); }
  // Returns the peer with this EID whose incarnation is `life`, or may turn out to be. A peer that
  // is known only by the address `at` gets the EID: two channels to one process would end each
  // other.
  Peer* find(const Eid& eid, const Endpoint& at, Incarnation life);
  // Returns the first peer with this address, whatever its EID.
  Peer* find_at(const Endpoint& at);
  // Returns null if no peer has this index.
  Peer* find(uint32_t index) { return peers_.live(index) ? &peers_.at(index) : nullptr; }
  PeerId id_of(const Peer& peer) const { return peers_.handle_of(&peer); }
  uint32_t index_of(const Peer& peer) const { return peers_.index_of(&peer); }
  template <class Function>
  void for_each(Function&& function) {
    peers_.for_each(function);
  }
  // `function` neither names nor destroys a peer.
  template <class Function>
  void for_each_of(const Eid& eid, Function&& function) {
    for (uint32_t i = by_eid_.find(eid); i != Peer::none; i = peers_.at(i).next_of_eid) {
      function(peers_.at(i));
    }
  }
  // Returns another peer of the same EID whose incarnation is known, or null.
  Peer* other_incarnation_of(const Peer& peer);

  // Returns a peer of this EID whose incarnation is known, and is another one; or null.
  Peer* of_another_life(const Eid& eid, Incarnation life);

  // ---- making and destroying

  // Returns null if the limit is reached.
  Peer* create(const Eid& eid, const Endpoint& at, Incarnation life);
  // Enters a peer that had no EID under this one, in front of its other incarnations.
  void name(Peer& peer, const Eid& eid);
  // Destroys a peer that has neither a channel nor routes.
  void destroy(Peer& peer);
  // Returns the peer that can be forgotten with the least harm: it has no channel and is not being
  // asked for one, and either no caller asked for it or no channel to it could be made. Peers that
  // never spoke come first, then those silent for longest. Returns null if all are needed.
  Peer* least_needed();
  bool full() const { return peers_.full(); }
  uint32_t size() const { return peers_.size(); }

  // ---- one timer for each peer: of its set-up, else of its goodbye

  void arm(const Peer& peer, Time deadline) { timers_.arm(index_of(peer), deadline); }
  void disarm(const Peer& peer) { timers_.disarm(index_of(peer)); }
  // Writes the indices of peers whose deadline has passed to `due`. Returns how many.
  size_t take_due(Time now, std::span<uint32_t> due) { return timers_.poll(now, due); }
  Time next_deadline() const { return timers_.next_deadline(); }

  // ---- counts of peers

  // Half open: a peer whose OPEN was accepted, and whose channel has carried nothing yet. After
  // `half_open_limit` it loses the channel.
  static constexpr Duration half_open_limit = std::chrono::seconds(3);
  void begin_half_open(Peer& peer);
  void end_half_open(Peer& peer);
  uint32_t half_open() const { return half_open_; }
  // Counts goodbyes that peers have not confirmed.
  void begin_goodbye(Peer& peer, uint8_t closes);
  void end_goodbye(Peer& peer);
  uint32_t goodbyes() const { return goodbyes_; }

  // Returns the size of an entry by EID, for the budget; the table is at most half full.
  static size_t eid_entry_bytes() { return FlatMap<Eid, HashEid>::entry_bytes(); }

 private:
  struct HashEid {
    uint64_t operator()(const Eid& eid) const;
  };
  void remove_name(const Peer& peer);

  const Eid self_;
  const Incarnation life_;
  Entropy& entropy_;
  Slab<Peer> peers_;
  FlatMap<Eid, HashEid> by_eid_;  // to the first of a list
  TimerWheel timers_;
  uint32_t nameless_ = 0;  // peers without an EID
  uint32_t half_open_ = 0;
  uint32_t goodbyes_ = 0;
};

}  // namespace urma::transport
