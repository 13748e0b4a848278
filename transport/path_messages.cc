// SPDX-License-Identifier: Apache-2.0
#include "transport/path_messages.h"

namespace urma::transport {

void PathMessages::lead(const PathList& paths, Time now) {
  own_paths_.lead(paths);
  peers_.for_each([&](Peer& peer) {
    if (peer.routes != nullptr) {
      peer.routes->lead(own_paths_.current(), peer.routes->table().theirs(), true, now);
      tell(peer, now);
    } else if (peer.eid == common_.settings.eid && peer.channel != nullptr) {
      // The channel of a device to itself has one path, which may be the one that is removed.
      const bool stays = peer.at == own_paths_.first();
      if (!stays) links_.end_channel(peer, Why::idle, now);
    }
  });
}

// A peer that does not accept PATHS learns the addresses from another OPEN.
void PathMessages::tell(Peer& peer, Time now) {
  Routes& routes = *peer.routes;
  if (routes.health().any_news()) links_.report_paths(peer);
  if (links_.leaving() || (peer.channel == nullptr && !peer.opening)) return;
  if (peer.channel != nullptr && !peer.notes_paths) {
    links_.cancel_opening(peer);
    return openings_.begin(peer, now);
  }
  routes.start_report(common_.entropy.next() | 1, now);
  if (peer.channel != nullptr) medium_.timers().arm_no_later(*peer.channel, now);
}

bool PathMessages::all_noted() {
  bool all = true;
  peers_.for_each([&](const Peer& peer) {
    const bool waits =
        peer.routes != nullptr && peer.channel != nullptr && peer.routes->report().open();
    all = all && !waits;
  });
  return all;
}

void PathMessages::tend(Peer& peer, Time now) {
  Routes* const routes = peer.routes;
  if (routes == nullptr || peer.channel == nullptr) return;
  if (outbox_.may_ask()) {
    if (const auto route = routes->due_report(now)) send_paths(peer, *route);
  }
  // A question that is not asked now stays due.
  while (outbox_.may_ask()) {
    const auto question = routes->health().question(now, common_.entropy.next() | 1);
    if (!question) break;
    send_question(peer, *question);
  }
  if (routes->health().any_news()) links_.report_paths(peer);
}

void PathMessages::send(const Peer& peer, const Route& route, const SetupMessage& message,
                        uint32_t padded_to) {
  outbox_.push({.to = route.to,
                .addresses = outbox_.addresses_to(peer.eid),
                .message = message,
                .padded_to = padded_to,
                .path = route.local});
}

void PathMessages::send_paths(const Peer& peer, uint8_t route) {
  SetupMessage message = outbox_.on_channel(SetupType::paths, peer);
  message.cookie = peer.routes->report().nonce();
  send(peer, (*peer.routes)[route], message);
}

void PathMessages::send_question(const Peer& peer, const RouteHealth::Question& question) {
  const Route& route = (*peer.routes)[question.route];
  SetupMessage message = outbox_.on_channel(SetupType::question, peer);
  message.attempt = question.route;
  message.cookie = question.nonce;
  // A path in doubt may carry small packets only, so the question is as large as a data packet.
  const bool doubted = route.known && (!route.usable || route.hasty);
  send(peer, route, message, doubted ? medium_.as_large_as(peer.channel->facts().packet_bytes) : 0);
}

PacketChannel* PathMessages::meant(const ArrivedSetup& arrived) {
  if (!names_us(arrived, common_.settings.life, common_.counters)) return nullptr;
  return medium_.meant(arrived);
}

// The message comes from a known address, or from one that it names, because all known ones may be
// gone.
void PathMessages::handle_paths(const ArrivedSetup& paths) {
  Counters& counters = common_.counters;
  const SetupMessage& message = paths.message;
  if (!names_us(paths, common_.settings.life, counters)) return;
  if (!medium_.has_paths()) return ignore(counters.malformed);
  const PacketChannel* const channel = medium_.named(message);
  if (channel == nullptr) return ignore(counters.unknown_channel);
  Peer& peer = *peers_.find(channel->peer());
  Routes* const routes = peer.routes;
  if (number(peer.life) != message.from_life) return ignore(counters.setup_incarnation);
  if (routes == nullptr ||
      !(message.paths.leads_to(paths.from) || routes->table().leads_to(paths.from))) {
    return ignore(counters.wrong_source);
  }
  if (message.paths.newer_than(routes->table().theirs().number)) {
    // Each list causes questions. The peer sends this one again.
    if (routes->table().led_often(paths.now)) return ignore(counters.setup_declined);
    routes->lead(own_paths_.current(), message.paths, true, paths.now);
    PeerPaths::move(peer);
    links_.report_paths(peer);
    medium_.timers().arm_no_later(*channel, paths.now);
    medium_.wake(*channel);
  }
  SetupMessage noted = outbox_.ours(SetupType::noted);
  noted.from_tpn = number(channel->local());
  noted.cookie = message.cookie;
  outbox_.answer(paths, noted);
}

void PathMessages::handle_noted(const ArrivedSetup& noted) {
  const PacketChannel* const channel = meant(noted);
  if (channel == nullptr) return;
  Routes* const routes = peers_.find(channel->peer())->routes;
  const bool asked = routes != nullptr && routes->report().open() &&
                     noted.message.cookie == routes->report().nonce();
  if (!asked) return ignore(common_.counters.setup_late);
  routes->report().end();
}

// The answer takes the path of the question and is not larger.
void PathMessages::handle_question(const ArrivedSetup& question) {
  const PacketChannel* const channel = meant(question);
  if (channel == nullptr) return;
  SetupMessage message = outbox_.ours(SetupType::answer);
  message.from_tpn = number(channel->local());
  message.cookie = question.message.cookie;
  outbox_.answer(question, message);
}

void PathMessages::handle_answer(const ArrivedSetup& answer) {
  const PacketChannel* const channel = meant(answer);
  if (channel == nullptr) return;
  Counters& counters = common_.counters;
  const Peer& peer = *peers_.find(channel->peer());
  Routes* const routes = peer.routes;
  if (routes == nullptr || answer.message.attempt >= routes->count()) {
    return ignore(counters.setup_late);
  }
  const auto number = static_cast<uint8_t>(answer.message.attempt);
  const Route& route = (*routes)[number];
  if (route.local != answer.path || !(route.to == answer.from)) {
    return ignore(counters.wrong_source);
  }
  if (!routes->health().answered(number, answer.message.cookie, answer.now)) {
    return ignore(counters.setup_late);
  }
  medium_.wake(*channel);
  if (routes->health().any_news()) links_.report_paths(peer);
}

}  // namespace urma::transport
