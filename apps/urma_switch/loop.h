// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "apps/urma_switch/forwarder.h"
#include "apps/urma_switch/medium.h"

namespace urma::apps::switches {

// Runs a Forwarder on ports to several media, on the calling thread.
class Loop {
 public:
  static constexpr size_t most_media = 32;

  // The ports outlive this object; there is at least one.
  Loop(std::span<drivers::PacketPort* const> ports, const Forwarder::Settings& settings);

  // Forwards until `stop` returns true. It is asked at least every 100 ms, and the thread also
  // wakes when `also`, a descriptor, becomes readable; -1: none.
  void run(const std::function<bool()>& stop, int also);

  const Forwarder& forwarder() const { return forwarder_; }
  std::span<const Medium> media() const { return media_; }

 private:
  static constexpr Duration tick = std::chrono::milliseconds(100);

  void ask_switches(Time now);
  bool receive(Time now);
  bool send(Time now);
  Forwarder::Media full() const;
  void give_way(Time now, int also);
  void nap(Time now, int also);
  Time due(Time now) const;
  void sleep(Time until, int also);

  std::vector<Medium> media_;
  Forwarder forwarder_;
  Time next_tick_{};
  Time idle_since_ = never;
};

}  // namespace urma::apps::switches
