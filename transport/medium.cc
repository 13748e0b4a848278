// SPDX-License-Identifier: Apache-2.0
#include "transport/medium.h"

#include <algorithm>

namespace urma::transport {

Medium::Medium(const Uses& uses, Pools& pools, Duration idle_timeout)
    : settings_(uses.settings),
      peers_(uses.peers),
      tpns_(uses.tpns),
      counters_(uses.counters),
      pools_(pools),
      timers_(uses.settings, uses.peers, idle_timeout) {}

PacketChannel* Medium::named(const SetupMessage& message) {
  PacketChannel* const channel = with_tpn(message.to_tpn);
  if (channel == nullptr) return nullptr;
  return number(channel->remote()) == message.from_tpn ? channel : nullptr;
}

PacketChannel* Medium::named(const SetupMessage& message, const Endpoint& from) {
  PacketChannel* const channel = named(message);
  return channel == nullptr || channel->leads_to(from) ? channel : nullptr;
}

PacketChannel* Medium::meant(const ArrivedSetup& arrived) {
  PacketChannel* const channel = named(arrived.message, arrived.from);
  if (channel != nullptr) return channel;
  ignore(named(arrived.message) == nullptr ? counters_.unknown_channel : counters_.wrong_source);
  return nullptr;
}

Medium::Viewed Medium::view(std::span<ChannelView> out, Time now) {
  Viewed done;
  for (uint32_t index = 0; done.channels < size(); ++index) {
    const PacketChannel* const channel = find(index);
    if (channel == nullptr) continue;
    const size_t views = channel->view(out.subspan(done.views), now);
    if (views == 0) break;
    const Peer& peer = *peers_.find(channel->peer());
    for (ChannelView& view : out.subspan(done.views, views)) {
      if (view.from == Endpoint{}) view.from = settings_.self;
      view.age = now - peer.contact_at;
      view_control(*channel, view);
    }
    done.views += views;
    ++done.channels;
  }
  return done;
}

ChannelEnds Medium::ends_of(const Peer& peer, const Agreed& agreed) const {
  const SetupMessage& theirs = agreed.theirs;
  return {
      .peer = peers_.id_of(peer),
      .local = peer.tpn,
      .remote = Tpn(theirs.from_tpn),
      .to = peer.at,
      .facts = {.packet_bytes = agreed.mtu,
                .tassn_window =
                    std::clamp<uint32_t>(theirs.tassn_window, 1, settings_.tassn_window),
                .reads = std::max<uint16_t>(theirs.reads, 1),
                .sequences = (theirs.features & feature_sequences) != 0,
                .atomic_results =
                    static_cast<uint8_t>(std::min<uint16_t>(theirs.atomic_results, UINT8_MAX))},
  };
}

}  // namespace urma::transport
