// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <vector>

#include "urma/core/time.h"
#include "wire/frame.h"

struct rte_mbuf;

namespace urma::drivers::dpdk {

// Packets that wait for the MAC address of their next hop, in the order in which they were sent, a
// bounded number for a bounded time. It owns their buffers until `take` returns them. The port owns
// it; used by one thread at a time.
class WaitingPackets {
 public:
  static constexpr size_t most = 256;
  static constexpr Duration patience = std::chrono::seconds(1);

  // Where a packet goes, and what its headers say.
  struct Destination {
    Endpoint to;
    Ecn ecn = Ecn::not_ect;
    uint32_t flow = 0;
    uint16_t queue = 0;
  };
  struct Packet {
    rte_mbuf* buffer = nullptr;
    Destination to;
    Time until{};
  };

  WaitingPackets() { packets_.reserve(most); }

  bool full() const { return packets_.size() == most; }
  bool empty() const { return packets_.empty(); }
  void add(rte_mbuf* buffer, const Destination& to, Time now) {
    packets_.push_back({buffer, to, now + patience});
  }
  // Calls `function(packet)` for each packet, and removes those for which it returns true.
  template <class Function>
  void take_if(Function&& function) {
    const auto rest = std::remove_if(packets_.begin(), packets_.end(), function);
    packets_.erase(rest, packets_.end());
  }

 private:
  std::vector<Packet> packets_;
};

}  // namespace urma::drivers::dpdk
