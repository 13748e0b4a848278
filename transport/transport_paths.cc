#include "transport/transport.h"

// Which paths lead to a peer, and which of them are there (docs/protocol.md, Paths).

namespace urma::transport {

// Where it can be asked before it has said anything itself: its first path may be the one that is
// dead. Also while it is being asked, where it may have left.
void Transport::expect_paths(Peer& peer, std::span<const Endpoint> also) {
  if (compact() || peer.eid == settings_.eid) return;
  Routes* const known = routes_of(peer);
  if (known != nullptr && live(peer.tp)) return;
  PathList theirs{.count = 1, .endpoints = {peer.at}};
  for (const Endpoint& place : also) {
    if (theirs.count < most_paths) theirs.endpoints[theirs.count++] = place;
  }
  if (known != nullptr) {
    // While no channel was there, nobody was told where it went.
    theirs.number = known->theirs().number;
    if (!known->goes_to(peer.at)) known->lead(paths_, theirs, false, now_);
    return;
  }
  if (!has_paths() && theirs.count == 1) return;
  Routes* const routes = routes_.create(paths_, theirs, now_, &more_routes_);
  routes->count_in(path_totals_);
  peer.routes = routes_.index_of(routes);
}

// Before the channel is made. What is known of the same paths stays known.
void Transport::learn_paths(Peer& peer, const PathList& theirs, const Endpoint& at, Time now) {
  if (compact()) return;
  if (!has_paths() && theirs.count == 0) return forget_paths(peer);
  PathList others = theirs;
  if (others.count == 0) others = {.count = 1, .endpoints = {at}};
  if (Routes* const known = routes_of(peer)) {
    known->lead(paths_, others, false, now);
    // Of what was before the channel nobody needs to be told.
    known->news();
  } else {
    Routes* const fresh = routes_.create(paths_, others, now, &more_routes_);
    fresh->count_in(path_totals_);
    peer.routes = routes_.index_of(fresh);
  }
  Routes& routes = *routes_of(peer);
  routes.doubt_all(now);
  // The set-up itself has come this way, and was answered.
  if (const auto route = routes.find(arrived_by_, at)) routes.prove(*route, now);
}

// ---- places that come and go while there are channels

void Transport::lead_paths(const PathList& paths, Time now) {
  const uint32_t number = (paths_.number + 1) & PathList::number_mask;
  paths_ = paths;
  paths_.number = number;
  for (uint8_t i = 0; i < most_paths; ++i) {
    if (paths_.there(i) && !(places_.endpoints[i] == paths_.endpoints[i])) path_totals_[i] = {};
    if (paths_.there(i)) places_.set(i, paths_.endpoints[i]);
  }
  paths_said_bytes_ = emit_paths(paths_, paths_said_);
  peers_.for_each([&](Peer& peer) {
    if (Routes* const routes = routes_of(peer)) {
      routes->lead(paths_, routes->theirs(), true, now);
      tell_peer(peer, now);
    } else if (peer.eid == settings_.eid && live(peer.tp)) {
      // To ourselves there is one path, and it may be the one that goes.
      const bool stays = peer.at == paths_.endpoints[paths_.first()];
      if (!stays) end_channel(peer, Why::idle, now);
    }
  });
}

// Who does not understand it without an OPEN takes another channel.
void Transport::tell_peer(Peer& peer, Time now) {
  Routes& routes = *routes_of(peer);
  if (routes.any_news()) tell_paths(peer);
  if (closing_ || !(live(peer.tp) || peer.opening)) return;
  if (live(peer.tp) && !peer.notes_paths) {
    cancel_opening(peer);
    return begin_opening(peer, now);
  }
  routes.tell(entropy_.next() | 1, now);
  if (live(peer.tp)) tp_timers_.arm_no_later(peer.tp, now);
}

bool Transport::told_paths() {
  bool told = true;
  peers_.for_each([&](const Peer& peer) {
    const Routes* const routes = routes_of(peer);
    told = told && (routes == nullptr || !live(peer.tp) || !routes->telling());
  });
  return told;
}

void Transport::send_paths(Peer& peer, uint8_t route) {
  const Routes& routes = *routes_of(peer);
  SetupMessage message = our_side(SetupType::paths);
  message.to_life = number(peer.life);
  message.from_tpn = number(at(peer.tp).local());
  message.to_tpn = number(at(peer.tp).remote());
  message.cookie = routes.tell_nonce();
  push_setup({.to = routes[route].to,
              .addresses = {.source = settings_.eid, .destination = peer.eid},
              .message = message,
              .path = routes[route].local});
}

// From a place that is known, or from one that it names: those that are known may all be gone.
void Transport::handle_paths(const ReceivedSetup& told, const Endpoint& from, Time now) {
  const SetupMessage& said = told.message;
  const uint32_t index = tps_by_tpn_.find(said.to_tpn);
  if (!names_us(told)) return;
  if (compact()) return ignore(counters_.malformed);
  if (!live(index)) return ignore(counters_.unknown_channel);
  const PacketChannel* const channel = &at(index);
  Peer& peer = *peers_.find(channel->peer());
  Routes* const routes = routes_of(peer);
  if (number(channel->remote()) != said.from_tpn) return ignore(counters_.unknown_channel);
  if (number(peer.life) != said.from_life) return ignore(counters_.setup_incarnation);
  if (routes == nullptr || !(said.paths.leads_to(from) || routes->leads_to(from))) {
    return ignore(counters_.wrong_source);
  }
  if (said.paths.newer_than(routes->theirs().number)) {
    // It asks for questions, and comes again.
    if (routes->led_often(now)) return ignore(counters_.setup_declined);
    routes->lead(paths_, said.paths, true, now);
    move_peer(peer);
    tell_paths(peer);
    tp_timers_.arm_no_later(peer.tp, now);
    pools_.active.add(peer.tp);
  }
  SetupMessage message = our_side(SetupType::noted);
  message.from_tpn = number(channel->local());
  message.cookie = told.message.cookie;
  answer(told, from, message);
}

void Transport::handle_noted(const ReceivedSetup& noted, const Endpoint& from) {
  if (!names_us(noted)) return;
  const PacketChannel* channel = channel_meant(noted, from);
  if (channel == nullptr) return;
  Routes* const routes = routes_of(*peers_.find(channel->peer()));
  const bool asked =
      routes != nullptr && routes->telling() && noted.message.cookie == routes->tell_nonce();
  if (!asked) return ignore(counters_.setup_late);
  routes->told();
}

// Its channel was made from a place that it may have left.
void Transport::move_peer(Peer& peer) {
  const PathList& theirs = routes_of(peer)->theirs();
  if (!theirs.leads_to(peer.at)) peer.at = theirs.endpoints[theirs.first()];
}

void Transport::forget_paths(Peer& peer) {
  if (peer.routes != none) routes_.destroy(&routes_.at(peer.routes));
  peer.routes = none;
}

void Transport::tend_paths(Peer& peer, Time now) {
  Routes* const routes = routes_of(peer);
  if (routes == nullptr || !live(peer.tp)) return;
  if (may_ask()) {
    if (const auto route = routes->tells(now)) send_paths(peer, *route);
  }
  while (may_ask()) {
    const auto question = routes->question(now, entropy_.next() | 1);
    if (!question) break;
    send_question(peer, *question);
  }
  if (routes->any_news()) tell_paths(peer);
}

void Transport::send_question(const Peer& peer, const Routes::Question& question) {
  const Routes::Route& route = (*routes_of(peer))[question.route];
  SetupMessage message = our_side(SetupType::question);
  message.to_life = number(peer.life);
  message.from_tpn = number(at(peer.tp).local());
  message.to_tpn = number(at(peer.tp).remote());
  message.attempt = question.route;
  message.cookie = question.nonce;
  // It may carry what is small, and nothing else.
  const bool doubted = route.known && (!route.usable || route.hasty);
  push_setup({.to = route.to,
              .addresses = {.source = settings_.eid, .destination = peer.eid},
              .message = message,
              .padded_to = doubted ? as_large_as(at(peer.tp).facts().packet_bytes) : 0,
              .path = route.local});
}

void Transport::tell_paths(Peer& peer) {
  Routes& routes = *routes_of(peer);
  const Routes::News news = routes.news();
  const struct {
    uint8_t routes;
    PeerNews::Of& counted;
    PathIs now;
  } kinds[] = {{news.removed, news_.path_removed, PathIs::removed},
               {news.added, news_.path_added, PathIs::added},
               {news.lost, news_.path_lost, PathIs::lost},
               {news.back, news_.path_back, PathIs::back}};
  for (const auto& kind : kinds) {
    for (uint8_t i = 0; i < most_paths; ++i) {
      if ((kind.routes >> i & 1) == 0) continue;
      PeerNews::note(kind.counted, routes[i].to);
      sink_.path(id_of(peer), i, kind.now);
    }
  }
}

// The answer takes the path of the question, and is no larger.
void Transport::handle_question(const ReceivedSetup& question, const Endpoint& from) {
  if (!names_us(question)) return;
  const PacketChannel* channel = channel_meant(question, from);
  if (channel == nullptr) return;
  SetupMessage message = our_side(SetupType::answer);
  message.from_tpn = number(channel->local());
  message.cookie = question.message.cookie;
  answer(question, from, message);
}

void Transport::handle_answer(const ReceivedSetup& answer, const Endpoint& from, Time now) {
  if (!names_us(answer)) return;
  const PacketChannel* channel = channel_meant(answer, from);
  if (channel == nullptr) return;
  Peer& peer = *peers_.find(channel->peer());
  Routes* const routes = routes_of(peer);
  if (routes == nullptr || answer.message.attempt >= routes->count()) {
    return ignore(counters_.setup_late);
  }
  const auto route = static_cast<uint8_t>(answer.message.attempt);
  if ((*routes)[route].local != arrived_by_ || !((*routes)[route].to == from)) {
    return ignore(counters_.wrong_source);
  }
  if (!routes->answered(route, answer.message.cookie, now)) {
    return ignore(counters_.setup_late);
  }
  pools_.active.add(channel->index());
  if (routes->any_news()) tell_paths(peer);
}

// Each try another way: which of them are there nobody knows.
void Transport::aim(Outgoing& message, const Peer& peer, unsigned number_of_try) {
  const Routes* const routes = routes_of(peer);
  if (routes == nullptr) return;
  const Routes::Route& route = (*routes)[routes->way(number_of_try)];
  message.to = route.to;
  message.path = route.local;
}

}  // namespace urma::transport
