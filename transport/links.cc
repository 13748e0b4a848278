// SPDX-License-Identifier: Apache-2.0
#include "transport/links.h"

#include <utility>

#include "base/assert.h"

namespace urma::transport {

Peer* Links::create(const Eid& eid, const Endpoint& at, Incarnation life, Time now) {
  if (peers_.full()) {
    if (Peer* const least = peers_.least_needed()) end_peer(*least, Why::left, now);
  }
  return peers_.create(eid, at, life);
}

void Links::bind_life(Peer& peer, Incarnation life, Time now) {
  peer.life = life;
  while (Peer* const other = peers_.other_incarnation_of(peer)) {
    end_peer(*other, Why::restarted, now);
  }
}

void Links::end_other_lives(const Eid& eid, Incarnation life, Time now) {
  while (Peer* const other = peers_.of_another_life(eid, life)) {
    end_peer(*other, Why::restarted, now);
  }
}

void Links::make(Peer& peer, const Medium::Agreed& agreed, Time now) {
  URMA_ASSERT(peer.channel == nullptr, "a peer has one channel");
  peer.notes_paths = (agreed.theirs.features & feature_new_paths) != 0;
  PacketChannel& channel = medium_.make(peer, agreed, now);
  peer.channel = &channel;
  peer.contact_at = now;
  tpns_.bind(peer.tpn, channel.index());
  medium_.timers().arm(channel);
  ++common_.counters.channels_made;
  PeerNews::note(common_.news.made, peer.at);
  common_.sink.up(channel.peer(), channel, now);
}

void Links::note_first_heard(const PacketChannel& channel) {
  Peer& peer = *peers_.find(channel.peer());
  peer.spoke = true;
  if (!peer.answered_open) return;
  peers_.end_half_open(peer);
  if (!peer.opening && peer.goodbyes == 0) peers_.disarm(peer);
}

void Links::cancel_opening(Peer& peer) {
  if (!peer.opening) return;
  tpns_.release(peer.tpn);
  peer.opening = false;
  medium_.asking_changed(peer.at);
  if (peer.channel == nullptr) return;
  peer.tpn = peer.doubted_tpn;
  peer.first_psn = peer.doubted_psn;
}

void Links::drop_channel(Peer& peer) {
  if (peer.channel == nullptr) return;
  PacketChannel& channel = *std::exchange(peer.channel, nullptr);
  peer.contact_at = channel.last_heard();
  tpns_.release(channel.local());
  peers_.end_half_open(peer);
  if (peer.goodbyes > 0 || peer.closes > 0) {
    // No other end is left that the goodbye could be sent to.
    peers_.end_goodbye(peer);
    peer.closes = 0;
    peers_.disarm(peer);
  }
  medium_.destroy(channel);
}

void Links::end_channel(Peer& peer, Why why, Time now) {
  drop_channel(peer);
  report_down(peer, why, now);
}

void Links::end_peer(Peer& peer, Why why, Time now) {
  drop_channel(peer);
  report_down(peer, why, now);
  cancel_opening(peer);
  paths_.forget(peer);
  peers_.destroy(peer);
}

void Links::report_down(const Peer& peer, Why why, Time now) {
  PeerNews::note(common_.news.of(why), peer.at);
  common_.sink.down(peers_.id_of(peer), why, now);
}

void Links::report_paths(const Peer& peer) {
  Routes& routes = *peer.routes;
  PeerNews& counted = common_.news;
  const RouteHealth::News news = routes.health().news();
  const struct {
    uint8_t routes;
    PeerNews::Of& counted;
    PathIs now;
  } kinds[] = {{news.removed, counted.path_removed, PathIs::removed},
               {news.added, counted.path_added, PathIs::added},
               {news.lost, counted.path_lost, PathIs::lost},
               {news.back, counted.path_back, PathIs::back}};
  for (const auto& kind : kinds) {
    for (uint8_t i = 0; i < most_paths; ++i) {
      if ((kind.routes >> i & 1) == 0) continue;
      PeerNews::note(kind.counted, routes[i].to);
      common_.sink.path(peers_.id_of(peer), i, kind.now);
    }
  }
}

}  // namespace urma::transport
