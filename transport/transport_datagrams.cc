// Messages that nobody answers (UB: UNO): a UTP Send like those of set-up, to another Jetty.

#include <algorithm>

#include "transport/transport.h"
#include "wire/icrc.h"

namespace urma::transport {
namespace {

size_t header_size(Carrier carrier) {
  return (carrier == Carrier::unreliable ? Utph::size : Ctph::size) + Addresses::size;
}

// Without a channel nobody asks which paths are there: each takes any of those that have been, or
// else of all that its descriptor names, so that one which is dead does not swallow all of them.
uint8_t some_route(const Routes& routes, uint64_t drawn) {
  const uint8_t proven = routes.for_answer();
  if (routes[proven].usable) return proven;
  const auto first = static_cast<unsigned>(drawn % routes.count());
  for (unsigned i = 0; i < routes.count(); ++i) {
    const auto at = static_cast<uint8_t>((first + i) % routes.count());
    if (routes[at].there && routes[at].known) return at;
  }
  return routes.way(first);
}

}  // namespace

Channel* Transport::unreliable(PeerId id) {
  const Peer* peer = peers_.find(id);
  if (peer == nullptr) return nullptr;
  Outgoing way;
  way.to = peer->at;
  const Routes* const routes = routes_of(*peer);
  if (routes != nullptr) {
    const Routes::Route& route = (*routes)[some_route(*routes, entropy_.next())];
    way.to = route.to;
    way.path = route.local;
  } else if (has_paths() && peer->eid == settings_.eid) {
    way.path = paths_.first();
    way.to = paths_.endpoints[way.path];
  }
  utp_.aim({.to = way.to,
            .path = way.path,
            .addresses = {
                .upi = Addresses::default_upi, .source = settings_.eid, .destination = peer->eid}});
  return &utp_;
}

size_t Transport::fill_datagrams(std::span<TxFrame* const> frames, uint64_t filled_before) {
  size_t used = 0;
  while (utp_.waits() && used < frames.size()) {
    TxFrame& frame = *frames[used];
    utp_.fill(frame);
    if (!compact()) seal(frame, endpoint_of(frame.path), pools_.prefix);
    const bool leaves = compact() ? may_take_room(frame) : places_.there(frame.path);
    used += leaves;
    counters_.datagrams_lost += !leaves;
    utp_.left(filled_before + used);
  }
  return used;
}

// Whether this UTP packet, stripped of its ICRC, is one rather than a set-up packet.
bool Transport::is_datagram(std::span<const std::byte> packet) const {
  const size_t target_at = header_size(carrier()) + Btah::size;
  return packet.size() >= target_at + Mtetah::size &&
         Mtetah::parse(packet.subspan(target_at).first<Mtetah::size>()).target !=
             number(setup_jetty);
}

// `packet`: all of it; `head`: the beginning, where nobody changes it any more. True:
// `fresh_[waiting]` is for the layer above.
bool Transport::take_datagram(std::span<const std::byte> packet, std::span<const std::byte> head,
                              const Endpoint& from, size_t waiting) {
  const size_t begin = header_size(carrier());
  size_t padding = 0;
  if (!compact()) {
    const auto utph = Utph::parse(head.first<Utph::size>());
    const bool known = utph && utph->next == NextHeader::full_addresses;
    if (!known || packet.size() < begin + utph->padding) {
      ++counters_.malformed;
      return false;
    }
    padding = utph->padding;
  }
  const auto addresses = Addresses::parse(head.first(begin).last<Addresses::size>());
  if (addresses.upi != Addresses::default_upi) {
    ++counters_.wrong_partition;
    return false;
  }
  const Eid& source = addresses.source;
  const bool ours = addresses.destination == settings_.eid || addresses.destination == Eid{};
  if (!ours || (compact() ? !(source == from.address) : !may_live_at(source, from))) {
    ++counters_.wrong_source;
    return false;
  }
  Received& out = fresh_[waiting];
  out = {.peer = who_lives(source, from),
         .last = true,
         .in_order = true,
         .datagram = true,
         .head = head.subspan(begin, std::min(head.size(), packet.size() - padding) - begin),
         .bytes = packet.subspan(begin, packet.size() - padding - begin)};
  return sink_.admits(out, waiting);
}

// Null: nobody that we know. A datagram makes nobody known.
PeerId Transport::who_lives(const Eid& eid, const Endpoint& at) {
  for (uint32_t i = peers_by_eid_.find(eid); i != none; i = peers_.at(i).next_of_eid) {
    Peer& peer = peers_.at(i);
    const Routes* const routes = routes_of(peer);
    if (peer.at == at || (routes != nullptr && routes->leads_to(at))) return id_of(peer);
  }
  return {};
}

}  // namespace urma::transport
