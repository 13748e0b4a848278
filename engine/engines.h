#pragma once

#include <atomic>
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

// The engines of one device: one, unless its device string says engines=N. Each has a port, peers
// and channels of its own, so threads that use Jetties of different engines share nothing. This
// object decides which engine a new queue belongs to, and gives each peer one name for all engines.
// What belongs to the device (segments, their tokens) is kept in each engine: `api/` makes each
// change of it in all of them.
//
// Any thread calls it. A pointer to a runner owns it, so `Device` and all that was made from it own
// it jointly.
class Engines : public std::enable_shared_from_this<Engines> {
 public:
  static constexpr uint32_t most = PeerAliases::most_engines;

  // `limits`: of each of the engines.
  Engines(std::vector<std::unique_ptr<Runner>> runners, const Limits& limits);
  Engines(const Engines&) = delete;
  Engines& operator=(const Engines&) = delete;
  // The first runner owns the descriptor of events, so it is destroyed last.
  ~Engines() {
    while (!runners_.empty()) runners_.pop_back();
  }

  // Returns the EID of an engine of a device. `first`: the EID of its first engine. `place`: where
  // the engine is reached.
  static Eid eid_of(const Eid& first, uint32_t engine, const Endpoint& place);
  // Returns the engine of the device that has this Jetty, if it has so many.
  static uint32_t engine_of(JettyId jetty, uint32_t engines) { return number(jetty) % engines; }

  uint32_t count() const { return static_cast<uint32_t>(runners_.size()); }
  Runner& at(uint32_t engine) const { return *runners_[engine]; }
  std::shared_ptr<Runner> runner(uint32_t engine) {
    return {shared_from_this(), runners_[engine].get()};
  }
  // Returns the engine of the queue that is made next: each in turn.
  std::shared_ptr<Runner> next() {
    return runner(next_.fetch_add(1, std::memory_order_relaxed) % count());
  }
  // Returns the addresses of all engines but the first.
  std::vector<Endpoint> further_places() const;
  // Returns where the Jetty of the descriptor is, which has one.
  static Endpoint place_of_jetty(const Descriptor& device);
  // Closes all engines, at the same time.
  void close();

  // Makes a device known, and returns its outer name; null if an engine knows as many peers as it
  // can. `mode`: as Device::import.
  PeerId know(const Descriptor& device, const std::optional<Retransmission>& mode);
  // Returns the outer name of this device.
  PeerId self() const { return at(0).self(); }
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
  // The names in one engine, and what its Jetties have notified.
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
  void add_self();
  uint32_t nearest(const Runner& engine, PeerId outer, uint32_t engines) const;
  PeerId name_in(Runner& engine, PeerId outer, uint32_t there);
  PeerId memory_in(Runner& engine, PeerId outer);
  [[gnu::cold]] PeerId learn(Runner& engine, PeerId outer, uint32_t there);
  void note(PeerId outer, const Descriptor& device, const std::optional<Retransmission>& mode);
  PeerId know_engine(Runner& engine, PeerId outer, const Known& device, uint32_t there);
  void find_engines(Runner& engine, PeerId outer, const Known& device);
  PeerId outer(Runner& engine, PeerId inner);
  [[gnu::cold]] PeerId find_outer(Runner& engine, PeerId inner);
  PeerAliases& aliases(const Runner& engine) const { return names_[engine.number()]->aliases; }

  std::vector<std::unique_ptr<Runner>> runners_;
  const Limits limits_;
  std::atomic<uint32_t> next_{0};
  std::mutex adding_;  // held while names are added
  // Of each engine. Made when the first peer gets another name, and constant from then on.
  std::vector<std::unique_ptr<Names>> names_;
  std::map<uint32_t, Known> known_;  // by the index of the outer name
};

}  // namespace urma::engine
