#pragma once

#include <atomic>
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

  // `peers`: how many each of the engines can know.
  Engines(std::vector<std::unique_ptr<Runner>> runners, uint32_t peers);
  Engines(const Engines&) = delete;
  Engines& operator=(const Engines&) = delete;
  // The first runner owns the descriptor of events, so it is destroyed last.
  ~Engines() {
    while (!runners_.empty()) runners_.pop_back();
  }

  uint32_t count() const { return static_cast<uint32_t>(runners_.size()); }
  Runner& at(uint32_t engine) const { return *runners_[engine]; }
  std::shared_ptr<Runner> runner(uint32_t engine) {
    return {shared_from_this(), runners_[engine].get()};
  }
  // Returns the engine of the queue that is made next: each in turn.
  std::shared_ptr<Runner> next() {
    return runner(next_.fetch_add(1, std::memory_order_relaxed) % count());
  }
  // Returns the addresses of all engines but this one.
  std::vector<Endpoint> places_beside(const Runner& runner) const;

  // Makes a peer known to all engines, and returns its outer name; null if an engine knows as many
  // peers as it can. `mode`: as Device::import.
  PeerId know(const Descriptor& device, const std::optional<Retransmission>& mode);
  // Returns the outer name of this device.
  static PeerId self(const Runner& runner) {
    return PeerAliases::outer_name(runner.number(), runner.self());
  }
  // Returns the engine that knows the peer by the name in its outer one.
  Runner& namer(PeerId outer) const {
    const uint32_t engine = PeerAliases::engine_of(outer);
    return at(engine < count() ? engine : 0);
  }

  // ---- for engines that rename peers

  // Return the work, or the segment, with the names that peers have in this engine. If a peer was
  // named by another engine and is new to this one, the calls wait for a pass of both. A peer that
  // is not known any longer gets a name that no peer has.
  Work inner(Runner& engine, const Work& work);
  RemoteSegment inner(Runner& engine, const RemoteSegment& segment);
  // Replace the names in what an engine reported by outer ones.
  void make_outer(const Runner& engine, std::span<Completion> some) const;
  void make_outer(const Runner& engine, std::span<Event> some) const;

 private:
  void rename_peers();
  PeerAliases::Inner names_in(Runner& engine, PeerId outer);
  [[gnu::cold]] PeerAliases::Inner learn(Runner& engine, PeerId outer);
  PeerAliases& aliases(const Runner& engine) const { return *aliases_[engine.number()]; }

  std::vector<std::unique_ptr<Runner>> runners_;
  const uint32_t peers_;
  std::atomic<uint32_t> next_{0};
  std::mutex adding_;  // held while names are added
  // Of each engine. Made when the first peer gets another name, and constant from then on.
  std::vector<std::unique_ptr<PeerAliases>> aliases_;
};

}  // namespace urma::engine
