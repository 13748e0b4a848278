#include "transport/transport.h"

// Which paths lead to a peer, and which of them are there (docs/protocol.md, Paths).

namespace urma::transport {

// Before the channel is made. What is known of the same paths stays known.
void Transport::learn_paths(Peer& peer, const PathList& theirs, const Endpoint& at, Time now) {
  if (compact()) return;
  PathList others = theirs;
  if (others.count == 0) others = {.count = 1, .endpoints = {at}};
  if (std::max(paths_.count, others.count) == 1) return forget_paths(peer);
  const Routes fresh(paths_.all(), others.all(), now);
  Routes* known = routes_of(peer);
  bool same = known != nullptr && known->count() == fresh.count();
  for (uint8_t i = 0; same && i < fresh.count(); ++i) same = (*known)[i].to == fresh[i].to;
  if (!same) {
    forget_paths(peer);
    known = routes_.create(fresh);
    peer.routes = routes_.index_of(known);
  }
  known->doubt_all(now);
  // The set-up itself has come this way, and was answered.
  if (const auto route = known->find(arrived_by_, at)) known->prove(*route, now);
}

void Transport::forget_paths(Peer& peer) {
  if (peer.routes != none) routes_.destroy(&routes_.at(peer.routes));
  peer.routes = none;
}

void Transport::tend_paths(Peer& peer, Time now) {
  Routes* const routes = routes_of(peer);
  if (routes == nullptr || !live(peer.tp)) return;
  while (const auto question = routes->question(now, entropy_.next() | 1)) {
    SetupMessage message = our_side(SetupType::question);
    message.to_life = number(peer.life);
    message.from_tpn = number(at(peer.tp).local());
    message.to_tpn = number(at(peer.tp).remote());
    message.attempt = question->route;
    message.cookie = question->nonce;
    push_setup({.to = (*routes)[question->route].to,
                .addresses = {.source = settings_.eid, .destination = peer.eid},
                .message = message,
                .path = (*routes)[question->route].local});
  }
  if (routes->any_news()) tell_paths(peer);
}

void Transport::tell_paths(Peer& peer) {
  Routes& routes = *routes_of(peer);
  const Routes::News news = routes.news();
  for (uint8_t i = 0; i < routes.count(); ++i) {
    const bool lost = (news.lost >> i & 1) != 0;
    const bool back = (news.back >> i & 1) != 0;
    if (!lost && !back) continue;
    PeerNews::note(back ? news_.path_back : news_.path_lost, routes[i].to);
    sink_.path(id_of(peer), i, back);
  }
}

// The answer takes the path of the question, and is no larger.
void Transport::handle_question(const ReceivedSetup& question, const Endpoint& from) {
  if (question.message.to_life != number(settings_.life)) return;
  const PacketChannel* channel = channel_named(question, from);
  if (channel == nullptr) return;
  SetupMessage message = our_side(SetupType::answer);
  message.from_tpn = number(channel->local());
  message.cookie = question.message.cookie;
  answer(question, from, message);
}

void Transport::handle_answer(const ReceivedSetup& answer, const Endpoint& from, Time now) {
  if (answer.message.to_life != number(settings_.life)) return;
  const PacketChannel* channel = channel_named(answer, from);
  if (channel == nullptr) return;
  Peer& peer = *peers_.find(channel->peer());
  Routes* const routes = routes_of(peer);
  if (routes == nullptr || answer.message.attempt >= routes->count()) return;
  const auto route = static_cast<uint8_t>(answer.message.attempt);
  if ((*routes)[route].local != arrived_by_ || !((*routes)[route].to == from)) return;
  routes->answered(route, answer.message.cookie, now);
  pools_.active.add(channel->index());
  if (routes->any_news()) tell_paths(peer);
}

// Each try another way: which of them are there nobody knows.
void Transport::aim(Outgoing& message, const Peer& peer, unsigned number_of_try) {
  const Routes* const routes = routes_of(peer);
  if (routes == nullptr) return;
  const Routes::Route& route = (*routes)[number_of_try % routes->count()];
  message.to = route.to;
  message.path = route.local;
}

}  // namespace urma::transport
