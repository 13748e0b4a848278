// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/entropy.h"
#include "transport/medium.h"
#include "transport/peer_paths.h"
#include "transport/upper.h"

namespace urma::transport {

// The objects that all parts of a device's transport use; they outlive the parts.
struct Common {
  const Settings& settings;
  Entropy& entropy;
  PacketSink& sink;
  Counters& counters;
  PeerNews& news;
};

// The link of each peer: the peer with its channel, its promised TPN and its paths. Links are made
// and ended only here, as a whole, so that no other class can leave half of a link behind; each
// change is counted and reported to the layer above. It sends no message and does not know why a
// link changes. Only the thread that runs the engine calls it.
class Links {
 public:
  struct Uses {
    Peers& peers;
    Tpns& tpns;
    PeerPaths& paths;
    Medium& medium;
  };
  Links(const Common& common, const Uses& uses)
      : common_(common),
        peers_(uses.peers),
        tpns_(uses.tpns),
        paths_(uses.paths),
        medium_(uses.medium) {}

  // Makes a peer. If the limit is reached, ends a peer that no caller on this device needs, and
  // returns null if all are needed. A peer that was ended in this way learns this when it contacts
  // the device again, so that works which it may have had executed here are not executed again.
  Peer* create(const Eid& eid, const Endpoint& at, Incarnation life, Time now);
  // Called when this incarnation of the peer has sent something: ends all other peers with its EID.
  void bind_life(Peer& peer, Incarnation life, Time now);

  // Called when this incarnation has sent something, and may have no peer here: ends all peers with
  // its EID that are other incarnations.
  void end_other_lives(const Eid& eid, Incarnation life, Time now);

  // Makes the channel of a peer that has none. Its TPN is `peer.tpn`.
  void make(Peer& peer, const Medium::Agreed& agreed, Time now);
  // Called when a packet has come on the channel.
  void note_heard(const PacketChannel& channel) {
    if (!channel.heard()) note_first_heard(channel);
  }
  // Stops asking the peer for a channel, if it is being asked. A channel in use stays.
  void cancel_opening(Peer& peer);
  // Ends the channel, if there is one, and reports that the peer has none.
  [[gnu::cold]] void end_channel(Peer& peer, Why why, Time now);
  // As end_channel, and then destroys the peer.
  void end_peer(Peer& peer, Why why, Time now);

  void report_down(const Peer& peer, Why why, Time now);
  // Reports how the peer's paths have changed since the last call. The peer has routes.
  void report_paths(const Peer& peer);

  // The device closes: from now on no channel is made.
  void leave() {
    leaving_ = true;
    medium_.timers().keep_idle();
  }
  bool leaving() const { return leaving_; }

 private:
  [[gnu::cold]] void note_first_heard(const PacketChannel& channel);
  void drop_channel(Peer& peer);

  const Common common_;
  Peers& peers_;
  Tpns& tpns_;
  PeerPaths& paths_;
  Medium& medium_;
  bool leaving_ = false;
};

}  // namespace urma::transport
