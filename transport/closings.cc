// SPDX-License-Identifier: Apache-2.0
#include "transport/closings.h"

namespace urma::transport {
namespace {

constexpr uint8_t tries = 3;
constexpr Duration close_again_after = std::chrono::milliseconds(20);

}  // namespace

// Sends the n-th CLOSE, counted from 0, and arms the timer for the next.
void Closings::send(Peer& peer, SetupReason reason, unsigned number_of_try, Time now) {
  SetupMessage close = outbox_.on_channel(SetupType::close, peer);
  close.reason = reason;
  if (reason == SetupReason::idle) close.cookie = peer.cookie;
  OutgoingSetup message{
      .to = peer.at, .addresses = outbox_.addresses_to(peer.eid), .message = close};
  PeerPaths::aim(message, peer, number_of_try);
  outbox_.push(message);
  peers_.arm(peer, now + close_again_after);
}

void Closings::say_goodbye(Time now) {
  links_.leave();
  peers_.for_each([&](Peer& peer) {
    links_.cancel_opening(peer);
    if (peer.channel == nullptr || peer.eid == common_.settings.eid) return;
    peers_.begin_goodbye(peer, tries);
    peer.closes = 0;
    send(peer, SetupReason::leaving, 0, now);
  });
}

void Closings::ask(Peer& peer, Time now) {
  peer.closes = tries;
  peer.cookie = common_.entropy.next() | 1;
  peer.sent_at = now;
  send(peer, SetupReason::idle, 0, now);
}

void Closings::handle_timer(Peer& peer, Time now) {
  if (peer.goodbyes == 0) return ask_again(peer, now);
  if (peer.goodbyes == 1) return peers_.end_goodbye(peer);
  --peer.goodbyes;
  send(peer, SetupReason::leaving, tries - peer.goodbyes, now);
}

// A peer that needs the channel answers by using it. A peer that does not answer at all cannot need
// it.
void Closings::ask_again(Peer& peer, Time now) {
  const PacketChannel& channel = *peer.channel;
  if (!channel.idle() || channel.last_heard() > peer.sent_at) {
    peer.closes = 0;
    medium_.timers().arm_no_later(channel);
    return;
  }
  if (--peer.closes == 0) return links_.end_channel(peer, Why::idle, now);
  send(peer, SetupReason::idle, tries - peer.closes, now);
}

void Closings::handle_close(const ArrivedSetup& close) {
  Counters& counters = common_.counters;
  const SetupMessage& message = close.message;
  if (!names_us(close, common_.settings.life, counters)) return;
  const PacketChannel* const channel = medium_.named(message, close.from);
  Peer* const peer = channel == nullptr ? nullptr : peers_.find(channel->peer());
  const bool idle = message.reason == SetupReason::idle;
  // The channel exists, but the peer has not named this address yet: it asks again.
  if (channel == nullptr && medium_.named(message) != nullptr) {
    return ignore(counters.wrong_source);
  }
  // Data on its way from here is the answer "no", and so is the goodbye of this device.
  if (idle && peer != nullptr && (!channel->idle() || peer->goodbyes > 0)) {
    return ignore(counters.setup_declined);
  }
  // A CLOSE is answered even if the channel does not exist any more, because then the first answer
  // was lost.
  SetupMessage closed = outbox_.ours(SetupType::closed);
  if (idle) closed.cookie = message.cookie;
  outbox_.answer(close, closed);
  if (peer == nullptr) return;
  if (number(peer->life) != message.from_life) return ignore(counters.setup_incarnation);
  if (message.reason == SetupReason::leaving) {
    links_.end_peer(*peer, Why::left, close.now);
  } else {
    links_.end_channel(*peer, idle ? Why::idle : Why::silent, close.now);
  }
}

void Closings::handle_closed(const ArrivedSetup& closed) {
  Counters& counters = common_.counters;
  const SetupMessage& message = closed.message;
  if (!names_us(closed, common_.settings.life, counters)) return;
  const PacketChannel* const channel = medium_.with_tpn(message.to_tpn);
  if (channel == nullptr) return ignore(counters.unknown_channel);
  Peer& peer = *peers_.find(channel->peer());
  if (message.from_life != number(peer.life)) return ignore(counters.setup_incarnation);
  if (peer.goodbyes == 0) {
    // The other end of the channel is gone. Slices that were offered since are sent over the next
    // channel.
    const bool asked = !peer.opening && peer.cookie != 0 && message.cookie == peer.cookie;
    if (!asked) return ignore(counters.setup_late);
    return links_.end_channel(peer, Why::idle, closed.now);
  }
  peers_.end_goodbye(peer);
  peers_.disarm(peer);
}

}  // namespace urma::transport
