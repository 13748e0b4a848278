// SPDX-License-Identifier: Apache-2.0
#include "transport/datagrams.h"

#include <algorithm>

namespace urma::transport {
namespace {

// Without a channel no question finds out which paths work. Each datagram takes any path that has
// been proven, else any path that the peer's descriptor names, so that a path that does not work
// does not lose all datagrams.
uint8_t some_route(const Routes& routes, uint64_t drawn) {
  const uint8_t proven = routes.scheduler().for_answer();
  if (routes[proven].usable) return proven;
  const auto first = static_cast<unsigned>(drawn % routes.count());
  for (unsigned i = 0; i < routes.count(); ++i) {
    const auto at = static_cast<uint8_t>((first + i) % routes.count());
    if (routes[at].there && routes[at].known) return at;
  }
  return routes.scheduler().way(first);
}

}  // namespace

Datagrams::Datagrams(const Common& common, Peers& peers, const OwnPaths& own_paths, Medium& medium)
    : common_(common),
      peers_(peers),
      own_paths_(own_paths),
      medium_(medium),
      headers_bytes_(SetupMessage::head_size(medium.carrier()) - Btah::size - Mtetah::size -
                     Ofstetah::size),
      utp_(common.settings.mtu, medium.carrier(), common.counters) {}

Channel* Datagrams::to(const Peer& peer) {
  Utp::Aim aim{
      .to = peer.at,
      .addresses = {
          .upi = Addresses::default_upi, .source = common_.settings.eid, .destination = peer.eid}};
  if (peer.routes != nullptr) {
    const Route& route = (*peer.routes)[some_route(*peer.routes, common_.entropy.next())];
    aim.to = route.to;
    aim.path = route.local;
  } else if (own_paths_.may_change() && peer.eid == common_.settings.eid) {
    aim.to = own_paths_.first();
    aim.path = own_paths_.current().first();
  }
  utp_.aim(aim);
  return &utp_;
}

size_t Datagrams::fill(std::span<TxFrame* const> frames, uint64_t filled_before) {
  size_t used = 0;
  while (utp_.waits() && used < frames.size()) {
    TxFrame& frame = *frames[used];
    utp_.fill(frame);
    const bool leaves = medium_.finish(frame);
    used += leaves;
    common_.counters.datagrams_lost += !leaves;
    utp_.left(filled_before + used);
  }
  return used;
}

bool Datagrams::parse(std::span<const std::byte> packet, std::span<const std::byte> head,
                      const Endpoint& from, Received& out) {
  Counters& counters = common_.counters;
  const auto addresses = Addresses::parse(head.first(headers_bytes_).last<Addresses::size>());
  if (addresses.upi != Addresses::default_upi) {
    ++counters.wrong_partition;
    return false;
  }
  const bool ours = addresses.destination == common_.settings.eid || addresses.destination == Eid{};
  if (!ours || !medium_.may_come_from(addresses.source, from)) {
    ++counters.wrong_source;
    return false;
  }
  out = {.peer = peer_at(addresses.source, from),
         .last = true,
         .in_order = true,
         .datagram = true,
         .head = head.first(std::min(head.size(), packet.size())).subspan(headers_bytes_),
         .bytes = packet.subspan(headers_bytes_)};
  return true;
}

// Returns a null handle if no peer with this EID is reached there.
PeerId Datagrams::peer_at(const Eid& eid, const Endpoint& at) {
  PeerId found;
  peers_.for_each_of(eid, [&](const Peer& peer) {
    if (!found && peer.is_reached_at(at)) found = peers_.id_of(peer);
  });
  return found;
}

}  // namespace urma::transport
