// SPDX-License-Identifier: Apache-2.0
#include "transport/openings.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "transport/setup_limits.h"

namespace urma::transport {
namespace {

constexpr Duration first_retry = std::chrono::milliseconds(10);
constexpr Duration last_retry = std::chrono::milliseconds(200);
constexpr Duration rtt_to_self = std::chrono::microseconds(100);

// Returns whether the answer says that the OPEN was for another process than the one that got it.
bool is_refusal_of_another(const ArrivedSetup& answer) {
  return answer.message.type == SetupType::refuse &&
         answer.message.reason == SetupReason::restarted;
}

}  // namespace

PacketChannel* Openings::channel(Peer& peer, Time now) {
  if (peer.channel != nullptr) return peer.channel;
  if (peer.eid == common_.settings.eid) {
    // If the peer turns out to be another incarnation, `make_to_self` destroys it.
    const PeerId id = peers_.id_of(peer);
    make_to_self(peer, now);
    const Peer* const self = peers_.find(id);
    return self == nullptr ? nullptr : self->channel;
  }
  if (!peer.opening && !links_.leaving()) begin(peer, now);
  return nullptr;
}

// The two ends of this channel are the same object, so it needs no set-up.
void Openings::make_to_self(Peer& peer, Time now) {
  const Settings& settings = common_.settings;
  if (peer.life == Incarnation{}) links_.bind_life(peer, settings.life, now);
  if (peer.life != settings.life) return links_.end_peer(peer, Why::restarted, now);
  peer.at = own_paths_.first();
  peer.tpn = tpns_.draw(common_.entropy);
  peer.first_psn = common_.entropy.below(Psn::modulus);
  SetupMessage theirs = outbox_.ours(SetupType::accept, &peer);
  theirs.from_tpn = number(peer.tpn);
  theirs.first_psn = peer.first_psn;
  theirs.features |= features_of(outbox_.offer());
  links_.make(
      peer,
      {.theirs = theirs, .mtu = settings.mtu, .first_rtt = rtt_to_self, .ours = outbox_.offer()},
      now);
}

void Openings::begin(Peer& peer, Time now) {
  // A channel in use keeps its TPN until the new one replaces it.
  const bool doubted = peer.channel != nullptr;
  if (doubted) {
    peer.doubted_tpn = peer.tpn;
    peer.doubted_psn = peer.first_psn;
  }
  peer.opening = true;
  peer.closes = 0;
  // OPEN itself lists the addresses of this device, so they need not be reported.
  if (!doubted && peer.routes != nullptr) peer.routes->report().end();
  medium_.asking_changed(peer.at);
  peer.refused = peer.given_up = false;
  peer.tpn = tpns_.draw(common_.entropy);
  peer.first_psn = common_.entropy.below(Psn::modulus);
  peer.attempt = ++attempts_;
  peer.tries = 0;
  peer.cookie = 0;
  peer.opened_at = now;
  tpns_.promise(peer.tpn, peers_.index_of(peer));
  send_open(peer, now);
}

void Openings::choose(Peer& peer, const Retransmission& mode, Time now) {
  if (mode_for(&peer, common_.settings) == mode) return;
  peer.chosen = mode;
  const bool agreed = peer.opening || peer.channel != nullptr;
  const bool to_self = peer.eid == common_.settings.eid;
  if (!agreed || links_.leaving() || !medium_.loses_packets() || to_self) return;
  links_.cancel_opening(peer);
  begin(peer, now);
}

void Openings::send_open(Peer& peer, Time now) {
  OutgoingSetup open = open_for(peer);
  PeerPaths::aim(open, peer, peer.tries);
  peer.may_retry = true;
  push(peer, open, now);
}

OutgoingSetup Openings::open_for(const Peer& peer) const {
  const uint32_t mtu = medium_.mtu_to_ask(peer);
  SetupMessage open = outbox_.ours(SetupType::open, &peer);
  open.features |= features_of(outbox_.offer());
  open.mtu_log2 = static_cast<uint8_t>(std::countr_zero(mtu));
  open.to_life = number(peer.life);
  open.from_tpn = number(peer.tpn);
  open.first_psn = peer.first_psn;
  open.attempt = peer.attempt;
  open.echoed_psn = peer.number;
  open.to_tpn = peer.their_number;
  open.cookie = peer.cookie;
  return {.to = peer.at,
          .addresses = outbox_.addresses_to(peer.eid),
          .message = open,
          .padded_to = medium_.as_large_as(mtu)};
}

void Openings::push(Peer& peer, const OutgoingSetup& open, Time now) {
  outbox_.push(open);
  peer.sent_at = now;
  const Duration wait = std::min(first_retry * (1 << std::min<int>(peer.tries, 8)), last_retry);
  if (peer.tries < UINT16_MAX) ++peer.tries;
  peers_.arm(peer, now + wait);
}

void Openings::handle_timer(Peer& peer, Time now) {
  if (!peer.refused) {
    peer.why_not = medium_.no_room_at(peer.at) ? Why::no_room : Why::unreachable;
  }
  if (now - peer.opened_at < common_.settings.setup_timeout) return send_open(peer, now);
  links_.cancel_opening(peer);
  peer.given_up = true;
  if (peer.channel == nullptr) return links_.report_down(peer, peer.why_not, now);
  // The peer has asked as well, and its set-up uses the same timer.
  if (peer.answered_open) peers_.arm(peer, now + Peers::half_open_limit);
  medium_.timers().arm_no_later(*peer.channel);
}

// Returns the peer whose OPEN this message answers. Returns null, and counts the reason, if this
// device does not wait for such an answer.
Peer* Openings::asked(const ArrivedSetup& answer) {
  Counters& counters = common_.counters;
  if (!names_us(answer, common_.settings.life, counters)) return nullptr;
  Peer* const peer = peers_.find(tpns_.promised_to(answer.message.to_tpn));
  if (peer == nullptr || answer.message.attempt != peer->attempt) {
    ++counters.setup_late;
    return nullptr;
  }
  if (peer->eid == Eid{} || peer->eid == answer.addresses.source) return peer;
  // Where the peer was, a process of another EID runs now, and says that the OPEN was not for it.
  if (is_refusal_of_another(answer) && peer->is_reached_at(answer.from)) return peer;
  ++counters.wrong_source;
  return nullptr;
}

void Openings::handle_retry(const ArrivedSetup& retry) {
  Peer* const peer = asked(retry);
  if (peer == nullptr) return;
  // The peer has sent the same cookie again, so it does not accept its own cookie. The next OPEN
  // waits for the timer.
  if (peer->cookie == retry.message.cookie) return ignore(common_.counters.setup_late);
  peer->cookie = retry.message.cookie;
  // The cookie holds for the address that the OPEN came from, and the RETRY may be forged. So for
  // each OPEN that the timer has sent, at most one with a cookie is sent immediately; otherwise the
  // timer's next OPEN carries the cookie.
  if (!peer->is_reached_at(retry.from) || !std::exchange(peer->may_retry, false)) return;
  OutgoingSetup open = open_for(*peer);
  open.to = retry.from;
  open.path = retry.path;
  push(*peer, open, retry.now);
}

// An ACCEPT came for which this device does not wait any longer. The channel exists at the other
// end, and its packets follow. If packets do not name their channel, they would be taken for those
// of the channel of an earlier incarnation, and its works would be executed again on the next
// channel.
void Openings::handle_late_accept(const ArrivedSetup& accept) {
  const auto life = Incarnation(accept.message.from_life);
  const bool for_us = accept.message.to_life == number(common_.settings.life);
  const bool from_another = accept.addresses.source != common_.settings.eid;
  if (medium_.loses_packets() || !for_us || !from_another || life == Incarnation{}) return;
  links_.end_other_lives(accept.addresses.source, life, accept.now);
}

void Openings::handle_accept(const ArrivedSetup& accept) {
  Peer* const peer = asked(accept);
  if (peer == nullptr) return handle_late_accept(accept);
  const SetupMessage& message = accept.message;
  const Eid& source = accept.addresses.source;
  const Time now = accept.now;
  if (message.from_life == 0 || !is_mtu(message.mtu_log2) || source == Eid{} ||
      source == common_.settings.eid) {
    return ignore(common_.counters.malformed);
  }
  const auto life = Incarnation(message.from_life);
  const bool forgot_us = peer->their_number != 0 && peer->their_number != message.acquaintance();
  if ((peer->life != Incarnation{} && peer->life != life) || forgot_us) {
    return links_.end_peer(*peer, Why::restarted, now);
  }
  peer->their_number = message.acquaintance();
  if (peer->eid == Eid{}) peers_.name(*peer, source);
  peer->at = accept.from;
  const Tpn tpn = peer->tpn;
  const uint32_t first_psn = peer->first_psn;
  links_.cancel_opening(*peer);
  peers_.disarm(*peer);
  // The peer has accepted the new channel, so it does not have the old one any more.
  if (peer->channel != nullptr) links_.end_channel(*peer, Why::silent, now);
  links_.bind_life(*peer, life, now);
  peer->tpn = tpn;
  peer->first_psn = first_psn;
  paths_.learn(*peer, message.paths, accept.from, accept.path, now);
  links_.make(*peer,
              {.theirs = message,
               .mtu = std::min(1u << message.mtu_log2, common_.settings.mtu),
               .first_rtt = peer->tries == 1 ? now - peer->sent_at : Duration{},
               .ours = outbox_.offer()},
              now);
}

void Openings::handle_refuse(const ArrivedSetup& refuse) {
  Peer* const peer = asked(refuse);
  if (peer == nullptr) return;
  switch (refuse.message.reason) {
    case SetupReason::restarted:
      return links_.end_peer(*peer, Why::restarted, refuse.now);
    case SetupReason::version:
      links_.cancel_opening(*peer);
      peers_.disarm(*peer);
      peer->given_up = true;
      peer->why_not = Why::refused;
      return links_.end_channel(*peer, Why::refused, refuse.now);
    case SetupReason::no_resources:
      peer->refused = true;
      peer->why_not = Why::no_room;
      return;  // asked again by the timer
    default:
      return ignore(common_.counters.malformed);
  }
}

void Openings::handle_reset(const ArrivedSetup& reset) {
  const PacketChannel* const channel = medium_.reset_by(reset);
  if (channel == nullptr) return;
  Peer& peer = *peers_.find(channel->peer());
  if (peer.opening || links_.leaving()) return ignore(common_.counters.setup_declined);
  if (!medium_.may_have_sent(*channel, reset.message)) return ignore(common_.counters.setup_late);
  begin(peer, reset.now);
}

}  // namespace urma::transport
