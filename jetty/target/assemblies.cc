// SPDX-License-Identifier: Apache-2.0
#include "jetty/target/assemblies.h"

namespace urma::jetty {

Assembly& Assemblies::create(const Assembly& assembly) {
  Assembly& created = *slab_.create(assembly);
  const uint32_t index = slab_.index_of(&created);
  by_slice_.insert(key(assembly.channel, assembly.slice), index);
  latest_ = index;
  PeerState& peer = peers_.at(assembly.peer);
  created.next = peer.first_assembly;
  if (peer.first_assembly != Assembly::none) slab_.at(peer.first_assembly).previous = index;
  peer.first_assembly = index;
  ++peer.assemblies;
  return created;
}

void Assemblies::erase(Assembly& assembly) {
  PeerState& peer = peers_.at(assembly.peer);
  --peer.assemblies;
  (assembly.previous != Assembly::none ? slab_.at(assembly.previous).next : peer.first_assembly) =
      assembly.next;
  if (assembly.next != Assembly::none) slab_.at(assembly.next).previous = assembly.previous;
  by_slice_.erase(key(assembly.channel, assembly.slice));
  slab_.destroy(&assembly);
}

void Assemblies::detach(const Jetty& jetty) {
  if (jetty.assemblies == 0) return;
  slab_.for_each([&](Assembly& assembly) {
    if (assembly.jetty != &jetty && assembly.receiver != &jetty) return;
    // Either its Jetty does not exist any more, or it has lost its JFR.
    const bool target = assembly.jetty == &jetty;
    assembly.give_back();
    assembly.verdict = target ? Assembly::Verdict::refuse : Assembly::Verdict::no_receives;
  });
}

void Assemblies::flush(const std::byte* base, uint64_t bytes) {
  slab_.for_each([&](Assembly& assembly) {
    if (!assembly.fills(base, bytes)) return;
    assembly.give_back();
    assembly.verdict = Assembly::Verdict::refuse;
  });
}

}  // namespace urma::jetty
