// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <string>

#include "drivers/dpdk/loader.h"
#include "tests/drivers/opening.h"
#include "tests/drivers/ports.h"

namespace urma::test {

// Two ends of a pair of rings.
inline std::string ring_end(unsigned number, const std::string& options = "") {
  return "dpdk:net_ring" + std::to_string(number) + ",pair=test?ip=10.9.0." +
         std::to_string(number + 1) + "/24" + options;
}
// A socket of this test's own, for two ports of one process.
inline std::string socket_path() { return "/tmp/urma-test-" + std::to_string(getpid()) + "-port"; }
inline std::string vhost(const std::string& options = "") {
  return "dpdk:net_vhost0,iface=" + socket_path() + "?ip=10.9.0.1/24" + options;
}
inline std::string virtio_user(const std::string& options = "") {
  return "dpdk:net_virtio_user0,path=" + socket_path() + "?ip=10.9.0.2/24" + options;
}

// A pair of memif on the same socket.
inline std::string memif_server(const std::string& options = "") {
  return "dpdk:net_memif0,role=server,socket=" + socket_path() + "-m?ip=10.9.0.1/24" + options;
}
inline std::string memif_client(const std::string& options = "") {
  return "dpdk:net_memif1,role=client,socket=" + socket_path() + "-m?ip=10.9.0.2/24" + options;
}

// Returns the number of packet buffers that closed ports have lost.
inline uint64_t lost_buffers() { return drivers::dpdk::load_plugin().value()->leaked(); }

// Sends packets from `a` until one arrives at `b`, for at most 5 s.
inline bool reaches(PortPair& ports) {
  for (int tries = 0; tries < 50; ++tries) {
    const Packet packet = packet_of(300, static_cast<unsigned>(tries));
    send_packet(ports, *ports.a, ports.b->facts().self, packet);
    RxFrame frame;
    const Time until = read_clock() + std::chrono::milliseconds(100);
    while (read_clock() < until) {
      ports.a->receive({}, read_clock());
      if (ports.b->receive({&frame, 1}, read_clock()) == 0) continue;
      const bool same =
          frame.bytes == packet.size() && std::equal(packet.begin(), packet.end(), frame.data);
      ports.b->release({&frame, 1});
      if (same) return true;
    }
  }
  return false;
}

}  // namespace urma::test
