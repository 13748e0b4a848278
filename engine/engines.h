// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "engine/peer_directory.h"
#include "engine/runner.h"

namespace urma::engine {

// The engines of one device: one, unless its device string says engines=N. Each has a port, peers
// and channels of its own, so threads that use Jetties of different engines share nothing. This
// object decides to which engine a new queue belongs. It does not keep what belongs to the device
// (segments, their tokens): each engine does, and `api/` makes each change of it in all of them.
//
// Any thread calls it. A pointer to a runner owns it, so `Device` and all that was made from it own
// it jointly.
class Engines : public std::enable_shared_from_this<Engines> {
 public:
  // `limits`: of each of the engines.
  Engines(std::vector<std::unique_ptr<Runner>> runners, const Limits& limits);
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
  // Returns the addresses of all engines but the first.
  std::vector<Endpoint> further_places() const;
  PeerDirectory& peers() { return peers_; }
  // Closes all engines, at the same time.
  void close();

 private:
  std::vector<std::unique_ptr<Runner>> runners_;
  std::atomic<uint32_t> next_{0};
  PeerDirectory peers_;
};

}  // namespace urma::engine
