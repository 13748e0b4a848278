#pragma once

#include <array>
#include <functional>
#include <memory>
#include <vector>

#include "apps/urma_switch/forwarder.h"
#include "drivers/driver.h"

namespace urma::apps::switches {

// Runs a Forwarder on a port, on the calling thread.
class Loop {
 public:
  Loop(drivers::PacketPort& port, const Forwarder::Settings& settings)
      : port_(port), forwarder_(settings) {}

  // Forwards until `stop` returns true. It is asked at least every 100 ms, and the thread also
  // wakes when `also`, a descriptor, becomes readable; -1: none.
  void run(const std::function<bool()>& stop, int also);

  const Forwarder& forwarder() const { return forwarder_; }

 private:
  static constexpr size_t burst = 64;
  static constexpr Duration tick = std::chrono::milliseconds(100);

  struct Sent {
    uint64_t number;  // of the frame, among those that the port has taken
    uint32_t slot;
  };

  bool receive(Time now);
  void answer(const LinkControl& message, const Endpoint& to, Time now);
  bool send(Time now);
  void settle();
  void sleep(Time now, int also);

  drivers::PacketPort& port_;
  Forwarder forwarder_;
  std::vector<Forwarder::Leaving> leaving_;  // that the port has not taken yet
  std::vector<Sent> sent_;                   // that have not settled, a queue from `sent_first_`
  size_t sent_first_ = 0;
  uint64_t taken_ = 0;
  Time next_tick_{};
};

}  // namespace urma::apps::switches
