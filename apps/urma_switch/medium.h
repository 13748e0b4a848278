// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "apps/urma_switch/forwarder.h"
#include "drivers/packet_port.h"

namespace urma::apps::switches {

// One of the media to which a switch has a port: receives what comes from there, and sends what
// leaves there. Reads no clock. Used by one thread.
class Medium {
 public:
  // The port outlives this object. `number`: of the medium.
  Medium(drivers::PacketPort& port, uint8_t number) : port_(port), number_(number) {}

  const drivers::PacketPort& port() const { return port_; }
  // Returns whether nothing that arrives wakes a thread.
  bool mute() const { return port_.descriptors().empty(); }
  // Returns whether the other ends poll, too: nothing that arrives wakes a thread, or only after
  // `arm`.
  bool polled() const { return mute() || port_.facts().arms; }
  // Around a sleep (PacketPort).
  void arm() { port_.arm(); }
  void disarm() { port_.disarm(); }

  // Gives what has arrived to the forwarder. Returns whether there was something.
  bool receive(Forwarder& forwarder, Time now);

  bool full() const { return leaving_.size() == burst; }
  // The next packet to be sent; the medium must not be full.
  void add(const Forwarder::Leaving& leaving) { leaving_.push_back(leaving); }
  // Returns whether the port has taken a packet.
  bool send(Time now);
  // Sends a message. One that cannot leave is lost: it is repeated.
  void tell(const LinkControl& message, const Endpoint& to, Time now);
  // Releases the memory of packets that the port does not read any longer.
  void settle(Forwarder& forwarder);
  // Returns whether the port has not taken packets, or may still read some.
  bool busy() const { return !leaving_.empty() || !sent_.empty(); }

 private:
  static constexpr size_t burst = 64;

  struct Sent {
    uint64_t number;  // of the frame, among those that the port has taken
    uint32_t slot;
  };

  drivers::PacketPort& port_;
  const uint8_t number_;
  std::vector<Forwarder::Leaving> leaving_;  // that the port has not taken yet
  std::vector<Sent> sent_;                   // that have not settled, a queue from `sent_first_`
  size_t sent_first_ = 0;
  uint64_t taken_ = 0;
};

}  // namespace urma::apps::switches
