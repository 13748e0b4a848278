// SPDX-License-Identifier: Apache-2.0
#include "transport/peers.h"

#include <utility>

#include "base/bits.h"
#include "transport/rtp/routes.h"

namespace urma::transport {

uint64_t Peers::HashEid::operator()(const Eid& eid) const {
  return mix_bits(load_be<8>(eid.bytes.data()) ^ mix_bits(load_be<8>(eid.bytes.data() + 8)));
}

bool Peer::has_route_to(const Endpoint& there) const {
  return routes != nullptr && routes->table().leads_to(there);
}

Peers::Peers(const Settings& settings, Entropy& entropy)
    : self_(settings.eid),
      life_(settings.life),
      entropy_(entropy),
      peers_(settings.peers),
      by_eid_(settings.peers),
      timers_(settings.peers) {}

Peer* Peers::find(const Eid& eid, const Endpoint& at, Incarnation life) {
  for (uint32_t i = by_eid_.find(eid); i != Peer::none; i = peers_.at(i).next_of_eid) {
    Peer& peer = peers_.at(i);
    if (life == Incarnation{} || peer.life == Incarnation{} || peer.life == life) return &peer;
  }
  Peer* found = nullptr;
  if (nameless_ == 0) return found;
  peers_.for_each([&](Peer& peer) {
    if (peer.eid == Eid{} && peer.at == at) found = &peer;
  });
  if (found != nullptr) name(*found, eid);
  return found;
}

Peer* Peers::find_at(const Endpoint& at) {
  Peer* found = nullptr;
  peers_.for_each([&](Peer& peer) {
    if (found == nullptr && peer.at == at) found = &peer;
  });
  return found;
}

Peer* Peers::other_incarnation_of(const Peer& peer) {
  Peer* found = nullptr;
  for_each_of(peer.eid, [&](Peer& other) {
    const bool is_another = &other != &peer && other.life != Incarnation{};
    if (found == nullptr && is_another) found = &other;
  });
  return found;
}

Peer* Peers::of_another_life(const Eid& eid, Incarnation life) {
  Peer* found = nullptr;
  for_each_of(eid, [&](Peer& peer) {
    const bool is_another = peer.life != Incarnation{} && peer.life != life;
    if (found == nullptr && is_another) found = &peer;
  });
  return found;
}

Peer* Peers::create(const Eid& eid, const Endpoint& at, Incarnation life) {
  Peer* const peer = peers_.create();
  if (peer == nullptr) return nullptr;
  do peer->number = entropy_.next32();
  while (peer->number == 0);
  peer->at = at;
  peer->life = life;
  ++nameless_;
  if (!(eid == Eid{})) name(*peer, eid);
  return peer;
}

void Peers::name(Peer& peer, const Eid& eid) {
  --nameless_;
  peer.eid = eid;
  peer.next_of_eid = by_eid_.find(eid);
  if (peer.next_of_eid != Peer::none) by_eid_.erase(eid);
  by_eid_.insert(eid, index_of(peer));
}

void Peers::destroy(Peer& peer) {
  end_half_open(peer);
  end_goodbye(peer);
  disarm(peer);
  remove_name(peer);
  peers_.destroy(&peer);
}

void Peers::remove_name(const Peer& peer) {
  if (peer.eid == Eid{}) {
    --nameless_;
    return;
  }
  const uint32_t index = index_of(peer);
  const uint32_t first = by_eid_.find(peer.eid);
  if (first == index) {
    by_eid_.erase(peer.eid);
    if (peer.next_of_eid != Peer::none) by_eid_.insert(peer.eid, peer.next_of_eid);
    return;
  }
  uint32_t before = first;
  while (peers_.at(before).next_of_eid != index) before = peers_.at(before).next_of_eid;
  peers_.at(before).next_of_eid = peer.next_of_eid;
}

Peer* Peers::least_needed() {
  Peer* least = nullptr;
  peers_.for_each([&](Peer& peer) {
    const bool needed = peer.channel != nullptr || peer.opening || peer.eid == self_ ||
                        (peer.life == life_ && life_ != Incarnation{}) ||
                        (peer.asked_for && !peer.given_up);
    if (needed) return;
    const bool less =
        least == nullptr ||
        (peer.spoke != least->spoke ? least->spoke : peer.contact_at < least->contact_at);
    if (less) least = &peer;
  });
  return least;
}

void Peers::begin_half_open(Peer& peer) {
  peer.answered_open = true;
  ++half_open_;
}

void Peers::end_half_open(Peer& peer) { half_open_ -= std::exchange(peer.answered_open, false); }

void Peers::begin_goodbye(Peer& peer, uint8_t closes) {
  peer.goodbyes = closes;
  ++goodbyes_;
}

void Peers::end_goodbye(Peer& peer) { goodbyes_ -= std::exchange(peer.goodbyes, 0) > 0; }

}  // namespace urma::transport
