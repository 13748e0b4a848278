#include "engine/engines.h"

#include <algorithm>

#include "base/bits.h"

namespace urma::engine {
namespace {

// Found in no table, as generations of living peers are odd.
constexpr PeerId over{0, 0};

bool are_one_device(const PeerAliases::Inner& a, const PeerAliases::Inner& b) {
  return a.exact == b.exact || (a.life == b.life && a.life != Incarnation{});
}

// Returns the addresses of all engines of a device, in an order that does not depend on which of
// them is at `at`.
std::vector<Endpoint> places_of(const Descriptor& device) {
  std::vector<Endpoint> places = device.engines;
  places.push_back(device.at);
  const auto before = [](const Endpoint& a, const Endpoint& b) {
    return a.address != b.address ? a.address < b.address : a.port < b.port;
  };
  std::sort(places.begin(), places.end(), before);
  return places;
}

}  // namespace

Engines::Engines(std::vector<std::unique_ptr<Runner>> runners, uint32_t peers)
    : runners_(std::move(runners)), peers_(peers) {
  for (uint32_t i = 0; i < count(); ++i) at(i).join(*this, i);
  if (count() > 1) rename_peers();
}

void Engines::rename_peers() {
  if (!aliases_.empty()) return;
  for (uint32_t i = 0; i < count(); ++i)
    aliases_.push_back(std::make_unique<PeerAliases>(i, count(), peers_));
  for (uint32_t i = 0; i < count(); ++i) at(i).rename_peers();
}

std::vector<Endpoint> Engines::places_beside(const Runner& runner) const {
  std::vector<Endpoint> places;
  for (const auto& other : runners_) {
    if (other.get() != &runner) places.push_back(other->port_facts().self);
  }
  return places;
}

// Devices that use the memory of one peer spread over its engines, as the engines of one device do.
PeerId Engines::know(const Descriptor& device, const std::optional<Retransmission>& mode) {
  const std::vector<Endpoint> places = places_of(device);
  const std::lock_guard lock(adding_);
  if (places.size() > 1) rename_peers();
  const uint64_t first = mix_bits(load_be<8>(at(0).port_facts().eid.bytes.data() + 8));
  std::array<PeerAliases::Inner, most> names;
  for (uint32_t i = 0; i < count(); ++i) {
    const Endpoint& nearest = places[(first + i) % places.size()];
    PeerAliases::Inner& inner = names[i];
    inner.life = device.life;
    at(i).call([&](Engine& engine, Time now) {
      transport::Transport& transport = engine.transport();
      inner.exact = transport.know(device.eid, device.at, device.life, device.also);
      inner.nearest = nearest == device.at ? inner.exact : transport.know({}, nearest, device.life);
      if (!inner.exact || !inner.nearest || !mode) return true;
      transport.choose(inner.exact, *mode, now);
      transport.choose(inner.nearest, *mode, now);
      return true;
    });
    if (!inner.exact || !inner.nearest) return {};
    if (device.life == at(i).life()) inner.nearest = at(i).self();
  }
  const PeerId outer = PeerAliases::outer_name(0, names[0].exact);
  for (uint32_t i = 0; i < aliases_.size(); ++i) aliases_[i]->add(outer, names[i], true);
  return outer;
}

// Asks the engine that named the peer.
PeerAliases::Inner Engines::learn(Runner& engine, PeerId outer) {
  PeerAliases::Inner names;
  if (PeerAliases::engine_of(outer) >= count()) return names;
  const std::lock_guard lock(adding_);
  std::optional<transport::Transport::PeerFacts> peer;
  namer(outer).call([&](Engine& there, Time) {
    peer = there.transport().facts(PeerAliases::name_there(outer));
    return true;
  });
  if (!peer) return names;
  names.life = peer->life;
  engine.call([&](Engine& here, Time) {
    names.exact = here.transport().know(peer->eid, peer->at, peer->life);
    return true;
  });
  if (!names.exact) return names;
  names.nearest = peer->life == engine.life() ? engine.self() : names.exact;
  aliases(engine).add(outer, names, false);
  return names;
}

PeerAliases::Inner Engines::names_in(Runner& engine, PeerId outer) {
  if (!outer) return {};
  PeerAliases::Inner names = aliases(engine).inner(outer);
  if (!names.exact) names = learn(engine, outer);
  if (!names.exact) names = {.exact = over, .nearest = over};
  return names;
}

RemoteSegment Engines::inner(Runner& engine, const RemoteSegment& segment) {
  RemoteSegment out = segment;
  out.peer = names_in(engine, segment.peer).nearest;
  return out;
}

// A Jetty is at one engine of its device, and so is what notifies it. Memory is at all of them.
Work Engines::inner(Runner& engine, const Work& work) {
  Work out = work;
  const PeerAliases::Inner target = names_in(engine, work.target.peer);
  if (work.operation == Operation::send) {
    out.target.peer = target.exact;
    return out;
  }
  const PeerAliases::Inner memory = names_in(engine, work.segment.peer);
  const bool one_device = are_one_device(target, memory);
  out.segment.peer = work.with_immediate && one_device ? target.exact : memory.nearest;
  out.target.peer = work.with_immediate ? target.exact
                    : one_device        ? memory.nearest
                                        : target.nearest;
  return out;
}

void Engines::make_outer(const Runner& engine, std::span<Completion> some) const {
  for (Completion& one : some) {
    if (one.from) one.from = aliases(engine).outer(one.from, true);
  }
}

void Engines::make_outer(const Runner& engine, std::span<Event> some) const {
  for (Event& one : some) {
    if (one.peer) one.peer = aliases(engine).outer(one.peer, false);
  }
}

}  // namespace urma::engine
