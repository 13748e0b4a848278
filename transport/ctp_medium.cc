// SPDX-License-Identifier: Apache-2.0
#include "transport/ctp_medium.h"

namespace urma::transport {

CtpMedium::CtpMedium(const Uses& uses, PacketSink& sink)
    : MediumOf(uses, Duration{}, uses.settings.slices, uses.settings.peers),
      sink_(sink),
      ways_(*uses.settings.ways),
      by_source_(uses.settings.peers) {}

PacketChannel& CtpMedium::make(Peer& peer, const Agreed& agreed, Time now) {
  const Ctp::Upwards upwards{.sink = sink_, .ways = ways_};
  Ctp* const ctp = channels_.create(channels_.next_index(), ends_of(peer, agreed), upwards,
                                    own_pools_, counters_, now);
  by_source_.insert(source_key(peer.at), ctp->index());
  forget_latest();
  return *ctp;
}

void CtpMedium::destroy(PacketChannel& channel) {
  by_source_.erase(source_key(channel.to()));
  forget_latest();
  timers_.disarm(channel);
  channels_.destroy(&channels_.at(channel.index()));
}

void CtpMedium::remember(uint64_t source) {
  const uint32_t index = by_source_.find(source);
  latest_channel_ = index == FlatMap<uint64_t>::none ? nullptr : &channels_.at(index);
  latest_source_ = source;
}

PacketChannel* CtpMedium::reset_by(const ArrivedSetup& reset) {
  const uint32_t index = by_source_.find(source_key(reset.from));
  if (index != FlatMap<uint64_t>::none) return &channels_.at(index);
  ignore(counters_.unknown_channel);
  return nullptr;
}

// A full way has no room for a message that is repeated anyway: it would take the room from packets
// that are not repeated, and to which the room was promised. Where there is no way yet, this makes
// one.
bool CtpMedium::finish(TxFrame& frame) {
  const auto bytes = static_cast<uint32_t>(frame.bytes());
  const uint32_t way = ways_.way_to(frame.to);
  return ways_.reserve(way, bytes) || ways_.state(way).gone;
}

// A packet that follows an OPEN would belong to the new channel, since packets have no numbers that
// show their channel. So nothing leaves to an address while a peer there is being asked, not even
// on the channel of an earlier incarnation.
void CtpMedium::asking_changed(const Endpoint& to) {
  const uint32_t index = by_source_.find(source_key(to));
  if (index == FlatMap<uint64_t>::none) return;
  Ctp& channel = channels_.at(index);
  bool asking = false;
  peers_.for_each([&](const Peer& peer) { asking = asking || (peer.opening && peer.at == to); });
  channel.pause(asking);
  if (!asking) wake(channel);
}

bool CtpMedium::no_room_at(const Endpoint& at) { return ways_.state(ways_.way_to(at)).no_room; }

}  // namespace urma::transport
