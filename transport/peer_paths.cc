// SPDX-License-Identifier: Apache-2.0
#include "transport/peer_paths.h"

namespace urma::transport {

PeerPaths::PeerPaths(const Settings& settings, OwnPaths& own_paths, bool has_paths)
    : self_(settings.eid),
      own_paths_(own_paths),
      has_paths_(has_paths),
      more_routes_(settings.peers),
      routes_(settings.peers) {}

void PeerPaths::expect(Peer& peer, std::span<const Endpoint> also, Time now) {
  if (!has_paths_ || peer.eid == self_) return;
  if (peer.channel != nullptr) return;
  PathList theirs{.count = 1, .endpoints = {peer.at}};
  for (const Endpoint& address : also) {
    if (theirs.count < most_paths) theirs.endpoints[theirs.count++] = address;
  }
  if (Routes* const known = peer.routes) {
    // Without a channel the peer could not report its new addresses.
    theirs.number = known->table().theirs().number;
    if (!known->table().goes_to(peer.at)) known->lead(own_paths_.current(), theirs, false, now);
    return;
  }
  if (!own_paths_.may_change() && theirs.count == 1) return;
  make(peer, theirs, now);
}

void PeerPaths::make(Peer& peer, const PathList& theirs, Time now) {
  peer.routes = routes_.create(own_paths_.current(), theirs, now, &more_routes_);
  peer.routes->count_in(own_paths_.totals());
}

void PeerPaths::learn(Peer& peer, const PathList& theirs, const Endpoint& from, uint8_t path,
                      Time now) {
  if (!has_paths_) return;
  if (!own_paths_.may_change() && theirs.count == 0) return forget(peer);
  PathList others = theirs;
  if (others.count == 0) others = {.count = 1, .endpoints = {from}};
  if (Routes* const known = peer.routes) {
    known->lead(own_paths_.current(), others, false, now);
    // Takes and discards the events from before this channel, so that they are not reported.
    known->health().news();
  } else {
    make(peer, others, now);
  }
  Routes& routes = *peer.routes;
  routes.health().doubt_all(now);
  // The set-up message came over this route, and was answered.
  if (const auto route = routes.table().find(path, from)) routes.health().prove(*route, now);
}

void PeerPaths::forget(Peer& peer) {
  if (peer.routes != nullptr) routes_.destroy(peer.routes);
  peer.routes = nullptr;
}

void PeerPaths::aim(OutgoingSetup& message, const Peer& peer, unsigned number_of_try) {
  if (peer.routes == nullptr) return;
  const Route& route = (*peer.routes)[peer.routes->scheduler().way(number_of_try)];
  message.to = route.to;
  message.path = route.local;
}

void PeerPaths::move(Peer& peer) {
  const PathList& theirs = peer.routes->table().theirs();
  if (!theirs.leads_to(peer.at)) peer.at = theirs.endpoints[theirs.first()];
}

}  // namespace urma::transport
