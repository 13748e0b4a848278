// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "congestion/signal.h"
#include "drivers/impairment.h"
#include "urma/core/endpoint.h"
#include "wire/frame.h"

namespace urma::drivers::sim {

// The faults that tests ask of the wire of a network, and a test's view of its packets. The network
// owns it and asks it about each packet. It knows addresses and packets, but neither ports nor
// engines.
class Faults {
 public:
  // The impairment of every packet, in addition to that of its port.
  Impairment impairment;
  // Longer packets are lost.
  size_t largest_packet = SIZE_MAX;
  // Called with each packet that a port has read from memory, before any impairment. The packet is
  // as it could be seen on the wire. For a port that can only be polled, it is called when the
  // packet arrives.
  std::function<void(const Endpoint& from, std::span<const std::byte> packet)> on_leave;
  // Called with the signal of each packet that asks for something, behind the last switch. May
  // change it, as a switch with a defect would.
  std::function<void(congestion::Signal& signal)> forge;

  // The faults of pairs, by which devices access the memory of others.
  struct OfPairs {
    double failed = 0;      // chance, for each transfer, that its pair fails when it arrives
    double late = 0;        // chance that a transfer arrives later
    Duration late_up_to{};  // late ones, and what is left of a transfer whose pair has failed
    bool stuck = false;     // as long as this is true, no transfer arrives
  };
  OfPairs pairs;

  // Loses packets from `from` to `to`, in this direction only, that are longer than `longest`; if
  // `severed` is false, loses them no longer.
  void cut(const Endpoint& from, const Endpoint& to, bool severed, size_t longest = 0);
  // Returns whether a packet of this length is lost because of a `cut`.
  bool is_cut(const Endpoint& from, const Endpoint& to, size_t bytes) const;
  // Calls `on_leave`, if there is one.
  void show(const Endpoint& from, const TxFrame& frame);
  void show(const Endpoint& from, std::span<const std::byte> packet) const {
    if (on_leave) on_leave(from, packet);
  }

 private:
  struct Cut {
    Endpoint from;
    Endpoint to;
    size_t longest;
  };

  std::vector<Cut> cuts_;
  std::vector<std::byte> shown_;  // the packet that `on_leave` is called with
};

}  // namespace urma::drivers::sim
