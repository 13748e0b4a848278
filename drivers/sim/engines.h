// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unordered_map>
#include <vector>

#include "base/prng.h"
#include "drivers/sim/wakes.h"
#include "drivers/virtual_clock.h"

namespace urma::drivers::sim {

// The engines of a network: which of them runs when, and which are stopped. The network owns it,
// and runs the first one whenever its time has come. It knows engines by indices, and neither
// addresses nor packets.
class Engines {
 public:
  using Driven = VirtualClock::Driven;
  static constexpr uint32_t none = UINT32_MAX;

  // `prng` decides how late engines run.
  explicit Engines(Prng& prng) : prng_(prng) {}

  // Returns the index of an engine. An engine that is not known yet is added, and runs at `now`.
  uint32_t add(Driven& driven, Time now);
  // Removes an engine and returns the index that it had; `none` if it is not known.
  uint32_t remove(Driven& driven);
  // Lets an engine run late after arrivals and timers, at random up to `most`.
  void allow_lateness(uint32_t engine, Duration most);
  // Lets an engine run at `now`, because its application has posted something.
  void poke(Driven& driven, Time now);
  // Lets an engine run because something has arrived for it.
  void wake(uint32_t engine, Time now);
  // Stops an engine, which does not run then, or lets it continue.
  void stop(uint32_t engine, bool stopped);

  // Returns when the next engine runs; `never` if none does.
  Time next() const { return wakes_.next(); }
  // Runs the engine that is next. There must be one.
  void run_next(Time now);

 private:
  struct Engine {
    Driven* driven = nullptr;  // null once removed
    Time next{};
    Duration most_late{};
    bool stopped = false;
  };

  void plan(uint32_t engine);
  Duration lateness_of(const Engine& engine);

  Prng& prng_;
  std::vector<Engine> engines_;
  std::unordered_map<const Driven*, uint32_t> index_of_;
  Wakes wakes_;  // of engines that are not stopped
};

}  // namespace urma::drivers::sim
