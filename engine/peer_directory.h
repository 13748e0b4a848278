// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "engine/peer_aliases.h"
#include "engine/runner.h"
#include "urma/core/descriptor.h"
#include "urma/core/event.h"
#include "urma/core/work.h"

namespace urma::engine {

// The devices that the engines of this device know. An application has one PeerId for each of them,
// its *outer* name; each engine here has another one for each engine of such a device, an *inner*
// name (`PeerAliases`). This class chooses the outer names, turns them into inner ones when works
// are posted, and back when an engine reports something, and decides to which engine of a peer a
// work goes. An engine learns the inner name of a peer's engine when it first needs it. In a device
// with one engine all names are the same, until it imports the descriptor of a device with several.
//
// Any thread calls it. `Engines` owns it.
class PeerDirectory {
 public:
  // `runners`: the engines, which outlive this object. `limits`: of each of them.
  PeerDirectory(const std::vector<std::unique_ptr<Runner>>& runners, const Limits& limits)
      : runners_(runners), limits_(limits) {}

  // Names this device, which has several engines; called once. `further`: where all but the first
  // are.
  void add_self(const std::vector<Endpoint>& further);
  // Returns the outer name of this device.
  PeerId self() const { return at(0).self(); }
  // Enters a device, and returns its outer name; null if an engine has no room for a further peer.
  // `mode`: as Device::import.
  PeerId know(const Descriptor& device, const std::optional<Retransmission>& mode);
  // Returns the engine that made the outer name.
  Runner& namer(PeerId outer) const {
    const uint32_t engine = PeerAliases::engine_of(outer);
    return at(engine < count() ? engine : 0);
  }

  // ---- for engines that rename peers

  // Return the work, or the segment, with the names that peers have in this engine. `jetty`: the
  // index of the Jetty that posts the work. The first work of an engine to an engine of a peer
  // waits for a pass. A peer that is not known any longer gets a name that no peer has.
  Work inner(Runner& engine, uint32_t jetty, const Work& work);
  RemoteSegment inner(Runner& engine, const RemoteSegment& segment);
  // Replace the names in what an engine reported by outer ones.
  void make_outer(Runner& engine, std::span<Completion> some);
  void make_outer(Runner& engine, std::span<Event> some);

 private:
  // The engine of a device that a Jetty has notified last. Its later works on memory of that device
  // go there, too, so that the target can keep their order. Written by the thread that posts.
  struct Notified {
    PeerId device;
    uint32_t engine = 0;
  };
  // The names in one engine, and what each of its Jetties has notified.
  struct Names {
    Names(uint32_t engines, const Limits& limits)
        : aliases(engines, limits.peers), notified(limits.jetties + 1) {}

    PeerAliases aliases;
    RegionArray<Notified> notified;
  };
  // A device as its descriptor states it.
  struct Known {
    uint32_t generation = 0;  // of its outer name
    Eid eid;                  // of its first engine
    Incarnation life{};
    std::vector<Endpoint> places;  // of its engines
    std::vector<Endpoint> also;    // the other addresses of the first one
    std::optional<Retransmission> mode;
  };

  void rename_peers();
  uint32_t nearest(const Runner& engine, PeerId outer, uint32_t engines) const;
  PeerId name_in(Runner& engine, PeerId outer, uint32_t there);
  PeerId memory_in(Runner& engine, PeerId outer);
  [[gnu::cold]] PeerId learn(Runner& engine, PeerId outer, uint32_t there);
  void note(PeerId outer, const Descriptor& device, const std::optional<Retransmission>& mode);
  PeerId know_engine(Runner& engine, PeerId outer, const Known& device, uint32_t there);
  void find_engines(Runner& engine, PeerId outer, const Known& device);
  PeerId outer(Runner& engine, PeerId inner);
  [[gnu::cold]] PeerId find_outer(Runner& engine, PeerId inner);
  uint32_t count() const { return static_cast<uint32_t>(runners_.size()); }
  Runner& at(uint32_t engine) const { return *runners_[engine]; }
  PeerAliases& aliases(const Runner& engine) const { return names_[engine.number()]->aliases; }

  const std::vector<std::unique_ptr<Runner>>& runners_;
  const Limits limits_;
  std::mutex adding_;  // held while names are added
  // One entry for each engine. Made when the first peer gets another name, and constant from then
  // on.
  std::vector<std::unique_ptr<Names>> names_;
  std::map<uint32_t, Known> known_;  // by the index of the outer name
};

}  // namespace urma::engine
