#pragma once

#include <span>

#include "base/slab.h"
#include "transport/own_paths.h"
#include "transport/peers.h"
#include "transport/setup_outbox.h"

namespace urma::transport {

// The paths to each peer that is, or may be, reached over several: it owns their `Routes` and keeps
// them in step with the addresses of both ends (docs/protocol.md, Paths). It sends nothing:
// `PathMessages` does. Only the thread that runs the engine calls it.
class PeerPaths {
 public:
  PeerPaths(const Settings& settings, OwnPaths& own_paths, bool has_paths);

  // Addresses at which the peer can be asked, before it has named any itself: its first path may
  // not work. Also while it is being asked. No effect while it has a channel.
  void expect(Peer& peer, std::span<const Endpoint> also, Time now);
  // The set-up message that names these addresses came from `from` on our path `path`. Called
  // before the channel is made. What is known of paths that stay is kept.
  void learn(Peer& peer, const PathList& theirs, const Endpoint& from, uint8_t path, Time now);
  void forget(Peer& peer);
  // Chooses where, and on which of our paths, the n-th try of a message to the peer leaves: each
  // time another one.
  static void aim(OutgoingSetup& message, const Peer& peer, unsigned number_of_try);
  // The peer has left the address that its channel was made with.
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
