// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <string>

#include "tests/drivers/opening.h"
#include "tests/drivers/ports.h"
#include "tests/drivers/window_file.h"

namespace urma::test {

inline std::unique_ptr<drivers::PacketPort> open_port_at(const WindowFile& window) {
  return PortPair::open(window.device(""));
}

// Opens two ports in the same window.
inline PortPair pair_at(const WindowFile& window) {
  return PortPair(window.device("?size=1M"), window.device(""));
}

inline Packet send_to(drivers::PacketPort& from, const Endpoint& to, unsigned seed = 1) {
  TxFrame* frame = nullptr;
  if (from.lend({&frame, 1}) == 0) return {};
  Packet packet = packet_of(100, seed);
  std::copy(packet.begin(), packet.end(), frame->head);
  frame->head_bytes = static_cast<uint8_t>(packet.size());
  frame->piece_count = frame->tail_bytes = 0;
  frame->to = to;
  from.send({&frame, 1}, read_clock());
  return packet;
}

// Returns whether a packet arrives.
inline bool reach(drivers::PacketPort& from, drivers::PacketPort& at, unsigned seed = 1) {
  const Packet packet = send_to(from, at.facts().self, seed);
  RxFrame got;
  for (int looks = 0; looks < 10; ++looks) {
    if (at.receive({&got, 1}, read_clock()) == 0) continue;
    const bool same =
        got.bytes == packet.size() && std::equal(packet.begin(), packet.end(), got.data);
    at.release({&got, 1});
    if (same) return true;
  }
  return false;
}

// Lets the ports do their regular work.
inline void look(std::initializer_list<drivers::PacketPort*> ports) {
  for (drivers::PacketPort* port : ports) port->receive({}, read_clock());
  for (drivers::PacketPort* port : ports) {
    RxFrame got;
    while (port->receive({&got, 1}, read_clock()) == 1) port->release({&got, 1});
  }
}

}  // namespace urma::test
