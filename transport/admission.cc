// SPDX-License-Identifier: Apache-2.0
#include "transport/admission.h"

#include <algorithm>
#include <bit>

#include "transport/setup_limits.h"

namespace urma::transport {

bool Admission::is_for_another(const ArrivedSetup& open) const {
  const Settings& settings = common_.settings;
  const Eid& destination = open.addresses.destination;
  const uint64_t life = open.message.to_life;
  return (!(destination == Eid{}) && !(destination == settings.eid)) ||
         (life != 0 && life != number(settings.life));
}

bool Admission::is_malformed(const ArrivedSetup& open) const {
  const SetupMessage& message = open.message;
  const Eid& source = open.addresses.source;
  return message.from_life == 0 || message.from_tpn == 0 || message.attempt == 0 ||
         !is_mtu(message.mtu_log2) || source == Eid{} || source == common_.settings.eid;
}

void Admission::handle_open(const ArrivedSetup& open) {
  const SetupMessage& message = open.message;
  const Eid& source = open.addresses.source;
  Counters& counters = common_.counters;
  if (message.version != setup_version) return refuse(open, SetupReason::version);
  if (is_for_another(open)) return refuse(open, SetupReason::restarted);
  if (is_malformed(open)) return ignore(counters.malformed);
  if (links_.leaving()) return ignore(counters.setup_declined);

  const auto life = Incarnation(message.from_life);
  Peer* const peer = peers_.find(source, open.from, life);
  const bool connected = peer != nullptr && peer->channel != nullptr;
  if (connected && number(peer->channel->remote()) == message.from_tpn) {
    return accept_again(*peer, open);
  }
  if (peer != nullptr && peer->life == life && message.attempt <= peer->attempt_seen) {
    return ignore(counters.setup_late);
  }
  // If both ends ask at the same time, only the OPEN of the end with the lower EID is answered.
  if (peer != nullptr && peer->opening && common_.settings.eid < peer->eid) {
    return ignore(counters.setup_declined);
  }
  if (belongs_to_another(open)) return ignore(counters.wrong_source);
  if (needs_cookie(source) && !cookies_.holds(open)) {
    SetupMessage retry = outbox_.ours(SetupType::retry);
    retry.cookie = cookies_.make(open);
    ++counters.setup_cookies;
    return outbox_.answer(open, retry);
  }
  admit(peer, open);
}

// Answers an OPEN that was repeated because the first answer was lost. The channel stays as it was
// made, even if the OPEN asks for less this time.
void Admission::accept_again(const Peer& peer, const ArrivedSetup& open) {
  const PacketChannel& channel = *peer.channel;
  SetupMessage acceptance = outbox_.ours(SetupType::accept, &peer);
  acceptance.features |= features_of(outbox_.offer_to(open.message));
  acceptance.mtu_log2 = static_cast<uint8_t>(std::countr_zero(channel.facts().packet_bytes));
  acceptance.from_tpn = number(channel.local());
  acceptance.first_psn = peer.opening ? peer.doubted_psn : peer.first_psn;
  acceptance.echoed_psn = peer.number;
  outbox_.answer(open, acceptance);
}

void Admission::refuse(const ArrivedSetup& open, SetupReason reason) {
  SetupMessage refusal = outbox_.ours(SetupType::refuse);
  refusal.reason = reason;
  ++common_.counters.setup_refused;
  outbox_.answer(open, refusal);
}

// A drawn EID belongs to the process that used it first: while the channel of that process lives,
// no process at another address gets it. The owner is asked for a sign of life, so that an owner
// that has moved waits no longer than until its old channel is found dead.
bool Admission::belongs_to_another(const ArrivedSetup& open) {
  bool taken = false;
  peers_.for_each_of(open.addresses.source, [&](const Peer& peer) {
    if (peer.channel == nullptr || peer.channel->to() == open.from) return;
    if (peer.has_route_to(open.from)) return;
    peer.channel->probe(open.now);
    taken = true;
  });
  return taken;
}

// Returns whether an OPEN from this EID, if it is believed, could cost a peer its channel or the
// records of its works, or whether too many peers are half open.
bool Admission::needs_cookie(const Eid& eid) {
  bool could_end_something = false;
  peers_.for_each_of(eid, [&](const Peer& peer) {
    could_end_something = could_end_something || peer.channel != nullptr || peer.spoke;
  });
  return could_end_something || peers_.half_open() >= most_half_open;
}

void Admission::admit(Peer* peer, const ArrivedSetup& open) {
  const uint32_t mtu = std::min(1u << open.message.mtu_log2, common_.settings.mtu);
  if (!acquainted(peer, open)) return refuse(open, SetupReason::restarted);
  if (peer == nullptr) {
    peer = links_.create(open.addresses.source, open.from, Incarnation(open.message.from_life),
                         open.now);
  }
  if (peer == nullptr) {
    probe_longest_silent(open.now);
    return refuse(open, SetupReason::no_resources);
  }
  welcome(*peer, open, static_cast<uint8_t>(std::countr_zero(mtu)));
}

// A target recognises repeated works by its records of the peer, so both ends must mean the same
// acquaintance. Returns false if the asker means one that was forgotten here. If the asker has
// forgotten the acquaintance that is known here, that ends here as well, and `peer` becomes null.
bool Admission::acquainted(Peer*& peer, const ArrivedSetup& open) {
  const SetupMessage& message = open.message;
  const bool known_here = peer != nullptr && peer->number == message.known_as();
  if (message.known_as() != 0 && !known_here) return false;
  if (peer == nullptr || peer->their_number == 0) return true;
  if (peer->life == Incarnation(message.from_life) &&
      peer->their_number != message.acquaintance()) {
    links_.end_peer(*peer, Why::restarted, open.now);
    peer = nullptr;
  }
  return true;
}

void Admission::welcome(Peer& peer, const ArrivedSetup& open, uint8_t mtu_log2) {
  const SetupMessage& message = open.message;
  SetupMessage acceptance = outbox_.ours(SetupType::accept, &peer);
  links_.cancel_opening(peer);
  peer.at = open.from;
  peer.attempt_seen = message.attempt;
  peer.their_number = message.acquaintance();
  if (peer.channel != nullptr) links_.end_channel(peer, Why::silent, open.now);
  links_.bind_life(peer, Incarnation(message.from_life), open.now);
  peer.tpn = tpns_.draw(common_.entropy);
  peer.first_psn = common_.entropy.below(Psn::modulus);
  peers_.begin_half_open(peer);
  peers_.arm(peer, open.now + Peers::half_open_limit);
  const ReportOffer offer = outbox_.offer_to(message);
  acceptance.features |= features_of(offer);
  acceptance.mtu_log2 = mtu_log2;
  acceptance.from_tpn = number(peer.tpn);
  acceptance.first_psn = peer.first_psn;
  acceptance.echoed_psn = peer.number;
  // The answer is sent first, because the layer above may have requests for the new channel.
  outbox_.answer(open, acceptance);
  paths_.learn(peer, message.paths, open.from, open.path, open.now);
  links_.make(peer, {.theirs = message, .mtu = 1u << mtu_log2, .ours = offer}, open.now);
}

// An idle channel does not show whether its peer lives. When another peer needs the memory, the
// peer silent for longest is asked (one for each call), so that a peer that has died or stalled is
// found and forgotten.
void Admission::probe_longest_silent(Time now) {
  PacketChannel* const longest = medium_.longest_silent();
  if (longest == nullptr) return;
  if (!longest->silent()) return longest->probe(now);
  ++common_.counters.channels_lost;
  links_.end_channel(*peers_.find(longest->peer()), Why::silent, now);
}

void Admission::handle_timer(Peer& peer, Time now) {
  // The peer asked and nothing came on the channel. It may never have received the answer and still
  // be asking, so the same OPEN is accepted again.
  --peer.attempt_seen;
  links_.end_channel(peer, Why::silent, now);
}

}  // namespace urma::transport
