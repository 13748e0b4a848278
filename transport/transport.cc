// SPDX-License-Identifier: Apache-2.0
#include "transport/transport.h"

#include <array>

namespace urma::transport {
namespace {

constexpr size_t timers_at_a_time = 64;

bool loses_nothing(const Settings& settings) { return settings.ways != nullptr; }

}  // namespace

Transport::Transport(const Settings& settings, Entropy& entropy, PacketSink& sink)
    : settings_(settings),
      entropy_(entropy),
      sink_(sink),
      own_paths_(settings_),
      peers_(settings_, entropy),
      tpns_(settings_.peers),
      peer_paths_(settings_, own_paths_, !loses_nothing(settings_)),
      medium_(make_medium()),
      links_(common(), {.peers = peers_, .tpns = tpns_, .paths = peer_paths_, .medium = medium_}),
      setup_(common(), {.peers = peers_,
                        .tpns = tpns_,
                        .own_paths = own_paths_,
                        .paths = peer_paths_,
                        .medium = medium_,
                        .links = links_}),
      datagrams_(common(), peers_, own_paths_, medium_),
      ingress_(make_ingress()) {}

// ---- the medium: the only place that knows which one it is

Medium& Transport::make_medium() {
  const Medium::Uses uses{
      .settings = settings_, .peers = peers_, .tpns = tpns_, .counters = counters_};
  if (loses_nothing(settings_)) return media_.emplace<CtpMedium>(uses, sink_);
  return media_.emplace<RtpMedium>(uses, own_paths_);
}

Ingress& Transport::make_ingress() {
  const Ingress::Uses uses{.links = links_, .setup = setup_, .datagrams = datagrams_};
  if (CtpMedium* const ctp = std::get_if<CtpMedium>(&media_)) {
    return ingresses_.emplace<CtpIngress>(common(), uses, *ctp);
  }
  return ingresses_.emplace<RtpIngress>(common(), uses, own_paths_, peers_, tpns_,
                                        std::get<RtpMedium>(media_));
}

// ---- the pass of the engine

void Transport::receive(std::span<const RxFrame> frames, Time now) {
  now_ = now;
  ingress_.receive(frames, now);
}

size_t Transport::fill(PacketSource& source, std::span<TxFrame* const> frames, Time now) {
  size_t used = setup_.outbox().waits() ? setup_.outbox().fill(frames) : 0;
  // However many datagrams there are, half of the remaining frames are for works that are answered.
  if (datagrams_.waits()) {
    const auto half = frames.subspan(used, (frames.size() - used + 1) / 2);
    used += datagrams_.fill(half, frames_filled_ + used);
  }
  used += medium_.fill(source, frames.subspan(used), now);
  frames_filled_ += used;
  return used;
}

void Transport::handle_timers(Time now) {
  now_ = now;
  std::array<uint32_t, timers_at_a_time> due;
  const size_t channels = medium_.timers().take_due(now, due);
  for (const uint32_t index : std::span(due).first(channels)) {
    if (PacketChannel* const channel = medium_.find(index)) handle_channel_timer(*channel, now);
  }
  const size_t peers = peers_.take_due(now, due);
  for (const uint32_t index : std::span(due).first(peers)) {
    if (Peer* const peer = peers_.find(index)) setup_.handle_timer(*peer, now);
  }
}

void Transport::handle_channel_timer(PacketChannel& channel, Time now) {
  const bool was_silent = channel.silent();
  if (const std::optional<Why> dead = channel.handle_timer(now)) {
    return end_dead_channel(channel, *dead, now);
  }
  Peer& peer = *peers_.find(channel.peer());
  setup_.paths().tend(peer, now);
  if (was_silent && !channel.silent()) sink_.up(channel.peer(), channel, now);
  if (!was_silent && channel.silent()) {
    PeerNews::note(news_.silent, peer.at);
    sink_.silent(channel.peer());
  }
  medium_.wake(channel);
  if (medium_.timers().closes_at(channel) <= now) setup_.closings().ask(peer, now);
  // `fill` arms the timer again; this keeps the deadline if there is no frame for the channel.
  medium_.timers().arm(channel, now + TimerWheel::tick);
}

void Transport::end_dead_channel(const PacketChannel& channel, Why why, Time now) {
  ++counters_.channels_lost;
  Peer& peer = *peers_.find(channel.peer());
  if (why == Why::no_room) peer.why_not = why;
  why == Why::left ? links_.end_peer(peer, why, now) : links_.end_channel(peer, why, now);
}

Time Transport::next_deadline() const {
  return std::min(medium_.timers().next_deadline(), peers_.next_deadline());
}

// ---- peers

PeerId Transport::know(const Eid& eid, const Endpoint& at, Incarnation life,
                       std::span<const Endpoint> also, Acquaintance how) {
  Peer* peer = eid == Eid{} ? peers_.find_at(at) : peers_.find(eid, at, life);
  if (how == Acquaintance::finds) return peer != nullptr ? peers_.id_of(*peer) : PeerId{};
  if (peer == nullptr) peer = links_.create(eid, at, life, now_);
  if (peer == nullptr) return {};
  // Records the incarnation that the caller asks for, so that no other incarnation takes its place.
  if (peer->life == Incarnation{}) peer->life = life;
  peer->asked_for = peer->asked_for || how == Acquaintance::holds;
  if (medium_.has_paths() && peer->channel == nullptr) peer->at = at;
  peer_paths_.expect(*peer, also, now_);
  return peers_.id_of(*peer);
}

std::optional<Transport::PeerFacts> Transport::facts(PeerId id) {
  const Peer* const peer = peers_.find(id);
  if (peer == nullptr) return std::nullopt;
  const bool connected = peer->channel != nullptr;
  return PeerFacts{.eid = peer->eid,
                   .at = peer->at,
                   .life = peer->life,
                   .connected = connected,
                   .rtt = connected ? peer->channel->rtt() : Duration{},
                   .routes = peer->routes};
}

void Transport::choose(PeerId id, const Retransmission& mode, Time now) {
  if (Peer* const peer = peers_.find(id)) setup_.openings().choose(*peer, mode, now);
}

Channel* Transport::channel(PeerId id, Time now) {
  Peer* const peer = peers_.find(id);
  return peer == nullptr ? nullptr : setup_.openings().channel(*peer, now);
}

Eid Transport::eid(PeerId id) {
  const Peer* const peer = peers_.find(id);
  return peer == nullptr ? Eid{} : peer->at.address;
}

Why Transport::why_not(PeerId id) {
  const Peer* const peer = peers_.find(id);
  return peer == nullptr ? Why::unreachable : peer->why_not;
}

Channel* Transport::unreliable(PeerId id) {
  const Peer* const peer = peers_.find(id);
  return peer == nullptr ? nullptr : datagrams_.to(*peer);
}

}  // namespace urma::transport
