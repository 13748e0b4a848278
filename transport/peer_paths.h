// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "base/slab.h"
#include "transport/own_paths.h"
#include "transport/peers.h"
#include "transport/setup_outbox.h"

namespace urma::transport {

// The paths to each peer that is, or may be, reached over several paths. It owns the peers'
// `Routes` and keeps them in step with the addresses of both ends (docs/protocol.md, Paths). It
// sends nothing: `PathMessages` does. Only the thread that runs the engine calls it.
class PeerPaths {
 public:
  PeerPaths(const Settings& settings, OwnPaths& own_paths, bool has_paths);

  // Adds addresses at which the peer can be asked for a channel before it has named any itself,
  // because its first path may not work. May be called while an OPEN is unanswered. Does nothing if
  // there is a channel, because the peer named its addresses when it was made.
  void expect(Peer& peer, std::span<const Endpoint> also, Time now);
  // The set-up message that names these addresses came from `from` on our path `path`. Called
  // before the channel is made. Measurements of paths that stay are kept.
  void learn(Peer& peer, const PathList& theirs, const Endpoint& from, uint8_t path, Time now);
  void forget(Peer& peer);
  // Sets the destination and the own path of try number `number_of_try` of a message to the peer.
  // Consecutive tries use different routes, if there are several.
  static void aim(OutgoingSetup& message, const Peer& peer, unsigned number_of_try);
  // Call it when the peer's list of addresses has changed. If the peer has left the address
  // `peer.at`, replaces that by another address of the list.
  static void move(Peer& peer);

 private:
  void make(Peer& peer, const PathList& theirs, Time now);

  const Eid self_;
  OwnPaths& own_paths_;
  const bool has_paths_;
  Slab<RouteTable::Four> more_routes_;  // of peers with more than four paths
  Slab<Routes> routes_;
};

}  // namespace urma::transport
