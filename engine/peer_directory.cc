// SPDX-License-Identifier: Apache-2.0
#include "engine/peer_directory.h"

#include <algorithm>

#include "base/bits.h"
#include "base/flat_map.h"
#include "engine/engine_places.h"

namespace urma::engine {
namespace {

// Found in no table, as generations of living peers are odd.
constexpr PeerId over{0, 0};

}  // namespace

// ---- what is known

void PeerDirectory::rename_peers() {
  if (!names_.empty()) return;
  for (uint32_t i = 0; i < count(); ++i)
    names_.push_back(std::make_unique<Names>(count(), limits_));
  for (const auto& runner : runners_)
    runner->membership().renames_peers.store(true, std::memory_order_release);
}

// The engines know one another, so that works of one to Jetties of another have the device's name.
void PeerDirectory::add_self(const std::vector<Endpoint>& further) {
  rename_peers();
  Known& own = known_[self().index];
  own = {.generation = self().generation,
         .eid = at(0).port_facts().eid,
         .life = at(0).life(),
         .places = {at(0).port_facts().self},
         .also = {},
         .mode = {}};
  own.places.insert(own.places.end(), further.begin(), further.end());
  for (uint32_t i = 0; i < count(); ++i) {
    aliases(at(i)).add(self(), count());
    aliases(at(i)).add(self(), i, at(i).self());
    for (uint32_t there = 0; there < count(); ++there) {
      if (there != i) know_engine(at(i), self(), own, there);
    }
  }
}

// Makes an engine of a peer's device known to an engine of this device. Returns null if that has no
// room for a further peer, or cannot reach it.
PeerId PeerDirectory::know_engine(Runner& engine, PeerId outer, const Known& device,
                                  uint32_t there) {
  if (there >= device.places.size()) return {};
  const Endpoint& place = device.places[there];
  if (!may_reach(at(0).port_facts().self.address, place.address)) return {};
  const Eid eid = eid_of_engine(device.eid, there, place);
  PeerId inner;
  engine.call([&](Engine& here, Time now) {
    const std::span<const Endpoint> also =
        there == 0 ? std::span(device.also) : std::span<const Endpoint>();
    inner = here.transport().know(eid, place, device.life, also);
    if (inner && device.mode) here.transport().choose(inner, *device.mode, now);
    return true;
  });
  if (inner) aliases(engine).add(outer, there, inner);
  return inner;
}

// Notes the engines of a device. They are the same as long as it lives.
void PeerDirectory::note(PeerId outer, const Descriptor& device,
                         const std::optional<Retransmission>& mode) {
  std::erase_if(known_, [&](const auto& other) {
    return other.first != outer.index && other.second.eid == device.eid &&
           other.second.life == device.life;
  });
  Known& known = known_[outer.index];
  if (known.generation != outer.generation) {
    known = {.generation = outer.generation,
             .eid = device.eid,
             .life = device.life,
             .places = places_of(device),
             .also = device.also,
             .mode = {}};
  }
  if (mode) known.mode = mode;
  const auto engines = static_cast<uint32_t>(known.places.size());
  for (const auto& runner : runners_) aliases(*runner).add(outer, engines);
  aliases(at(0)).add(outer, 0, outer);
}

// The name of the device is that of its first engine, in the first engine of this one. Each engine
// learns now which other ones it needs: that of the Jetty, and for memory the nearest one.
PeerId PeerDirectory::know(const Descriptor& device, const std::optional<Retransmission>& mode) {
  PeerId outer;
  at(0).call([&](Engine& engine, Time now) {
    outer = engine.transport().know(device.eid, device.at, device.life, device.also);
    if (outer && mode) engine.transport().choose(outer, *mode, now);
    return true;
  });
  const bool plain = count() == 1 && device.engines.empty();
  if (!outer || outer == self() || plain) return outer;
  const std::lock_guard lock(adding_);
  rename_peers();
  note(outer, device, mode);
  const Known& known = known_[outer.index];
  const auto engines = static_cast<uint32_t>(known.places.size());
  for (const auto& runner : runners_) {
    find_engines(*runner, outer, known);
    if (device.jetty && !know_engine(*runner, outer, known, engine_of(device.jetty->id, engines)))
      return {};
    if (device.segment && !know_engine(*runner, outer, known, nearest(*runner, outer, engines)) &&
        !know_engine(*runner, outer, known, 0))
      return {};
  }
  return outer;
}

// Engines of a device that this engine has met before get the name of the device, and those that it
// has forgotten are learned again.
void PeerDirectory::find_engines(Runner& engine, PeerId outer, const Known& device) {
  using Acquaintance = transport::Transport::Acquaintance;
  for (uint32_t there = 0; there < device.places.size(); ++there) {
    const Endpoint& place = device.places[there];
    PeerId inner;
    engine.call([&](Engine& here, Time now) {
      const Eid eid = eid_of_engine(device.eid, there, place);
      inner = here.transport().know(eid, place, device.life, {}, Acquaintance::finds);
      if (inner && device.mode) here.transport().choose(inner, *device.mode, now);
      return true;
    });
    aliases(engine).add(outer, there, inner);
  }
}

// Devices that use the memory of one peer spread over its engines, as the engines of one device do.
uint32_t PeerDirectory::nearest(const Runner& engine, PeerId outer, uint32_t engines) const {
  if (outer == self()) return engine.number();
  const uint64_t first = mix_bits(load_be<8>(at(0).port_facts().eid.bytes.data() + 8));
  return static_cast<uint32_t>((first + engine.number()) % engines);
}

// ---- to inner names

PeerId PeerDirectory::learn(Runner& engine, PeerId outer, uint32_t there) {
  if (PeerAliases::engine_of(outer) >= count()) return {};
  // A peer that was not imported has the name that its engine gave it.
  if (&namer(outer) == &engine && aliases(engine).engines(outer) == 0)
    return PeerAliases::name_there(outer);
  const std::lock_guard lock(adding_);
  if (const PeerId inner = aliases(engine).inner(outer, there)) return inner;
  const auto found = known_.find(outer.index);
  if (found != known_.end() && found->second.generation == outer.generation)
    return know_engine(engine, outer, found->second, there);
  std::optional<transport::Transport::PeerFacts> peer;
  namer(outer).call([&](Engine& other, Time) {
    peer = other.transport().facts(PeerAliases::name_there(outer));
    return true;
  });
  if (!peer) return {};
  PeerId inner;
  engine.call([&](Engine& here, Time) {
    inner = here.transport().know(peer->eid, peer->at, peer->life, {},
                                  transport::Transport::Acquaintance::meets);
    return true;
  });
  aliases(engine).add(outer, 1);
  // If it was imported meanwhile, it keeps the name of its import.
  aliases(engine).add(outer, 0, inner, !aliases(engine).outer(inner));
  return inner;
}

PeerId PeerDirectory::name_in(Runner& engine, PeerId outer, uint32_t there) {
  if (!outer) return {};
  PeerId inner = aliases(engine).inner(outer, there);
  if (!inner) inner = learn(engine, outer, there);
  return inner ? inner : over;
}

// Memory is at all engines of its device. If the nearest cannot be used, the first may be.
PeerId PeerDirectory::memory_in(Runner& engine, PeerId outer) {
  const uint32_t engines = std::max(1u, aliases(engine).engines(outer));
  const PeerId near = name_in(engine, outer, nearest(engine, outer, engines));
  return near == over ? name_in(engine, outer, 0) : near;
}

RemoteSegment PeerDirectory::inner(Runner& engine, const RemoteSegment& segment) {
  RemoteSegment out = segment;
  if (segment.peer) out.peer = memory_in(engine, segment.peer);
  return out;
}

Work PeerDirectory::inner(Runner& engine, uint32_t jetty, const Work& work) {
  Work out = work;
  Notified& notified = names_[engine.number()]->notified[jetty];
  const bool to_jetty = work.operation == Operation::send || work.with_immediate;
  if (to_jetty && work.target.peer) {
    const uint32_t engines = std::max(1u, aliases(engine).engines(work.target.peer));
    notified = {work.target.peer, engine_of(work.target.id, engines)};
    out.target.peer = name_in(engine, work.target.peer, notified.engine);
  }
  if (work.operation == Operation::send || !work.segment.peer) return out;
  const bool as_notified = work.segment.peer == notified.device;
  out.segment.peer = as_notified ? name_in(engine, work.segment.peer, notified.engine) : over;
  if (out.segment.peer == over && !(as_notified && to_jetty))
    out.segment.peer = memory_in(engine, work.segment.peer);
  // A notification is stored in memory of the same device.
  const bool one_device = work.target.peer == work.segment.peer;
  if (!to_jetty) out.target.peer = one_device ? out.segment.peer : over;
  return out;
}

// ---- to outer names

// An engine of a device that was imported has met this engine first.
PeerId PeerDirectory::find_outer(Runner& engine, PeerId inner) {
  std::optional<transport::Transport::PeerFacts> peer;
  engine.call([&](Engine& here, Time) {
    peer = here.transport().facts(inner);
    return true;
  });
  const PeerId unknown = PeerAliases::outer_name(engine.number(), inner);
  const std::lock_guard lock(adding_);
  for (const auto& [index, device] : known_) {
    if (!peer || device.life != peer->life) continue;
    const PeerId outer{index, device.generation};
    for (uint32_t there = 0; there < device.places.size(); ++there) {
      if (eid_of_engine(device.eid, there, device.places[there]) != peer->eid) continue;
      aliases(engine).add(outer, there, inner);
      return outer;
    }
  }
  aliases(engine).call(inner, unknown);
  return unknown;
}

PeerId PeerDirectory::outer(Runner& engine, PeerId inner) {
  const PeerId found = aliases(engine).outer(inner);
  return found ? found : find_outer(engine, inner);
}

void PeerDirectory::make_outer(Runner& engine, std::span<Completion> some) {
  for (Completion& one : some) {
    if (one.from) one.from = outer(engine, one.from);
  }
}

void PeerDirectory::make_outer(Runner& engine, std::span<Event> some) {
  for (Event& one : some) {
    if (one.peer) one.peer = outer(engine, one.peer);
  }
}

}  // namespace urma::engine
