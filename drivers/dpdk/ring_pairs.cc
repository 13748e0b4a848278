// SPDX-License-Identifier: Apache-2.0
#include "drivers/dpdk/ring_pairs.h"

#include <rte_bus_vdev.h>
#include <rte_errno.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_ring.h>

#include <array>
#include <map>
#include <mutex>

namespace urma::drivers::dpdk {
namespace {

constexpr unsigned slots = 2048;
constexpr int no_port = -1;

struct Pair {
  std::array<rte_ring*, 2> rings{};  // each is received from by the end of the same index
  std::array<int, 2> ports{no_port, no_port};
  unsigned number = 0;
};

struct Pairs {
  std::mutex mutex;
  std::map<std::string, Pair> by_name;
  unsigned made = 0;
};
Pairs& pairs() {
  static Pairs& all = *new Pairs;
  return all;
}

void drain(rte_ring* ring) {
  void* packet = nullptr;
  while (rte_ring_dequeue(ring, &packet) == 0) rte_pktmbuf_free(static_cast<rte_mbuf*>(packet));
}

void free_ring(rte_ring* ring) {
  if (ring != nullptr) drain(ring);
  rte_ring_free(ring);
}

bool make_rings(Pair& pair) {
  for (unsigned i = 0; i < pair.rings.size(); ++i) {
    const std::string name = "urma_ring" + std::to_string(pair.number) + (i == 0 ? "a" : "b");
    // Both ends take packets out: the receiver, and the sender that drains it.
    pair.rings[i] = rte_ring_create(name.c_str(), slots, SOCKET_ID_ANY, RING_F_SP_ENQ);
    if (pair.rings[i] == nullptr) return false;
  }
  return true;
}

}  // namespace

Result<uint16_t> open_ring_end(const std::string& name) {
  Pairs& all = pairs();
  const std::lock_guard lock(all.mutex);
  const auto [at, fresh] = all.by_name.try_emplace(name);
  Pair& pair = at->second;
  if (fresh) pair.number = all.made++;
  const unsigned end = pair.ports[0] == no_port ? 0 : 1;
  if (pair.ports[end] != no_port) {
    return Error{Status::address_in_use, "dpdk: both ends of pair=" + name +
                                             " are open. Fix: close one, or choose another "
                                             "name"};
  }
  const bool has_rings = !fresh || make_rings(pair);
  if (has_rings) {
    const std::string port = "urma" + std::to_string(pair.number) + (end == 0 ? "a" : "b");
    pair.ports[end] =
        rte_eth_from_rings(port.c_str(), &pair.rings[end], 1, &pair.rings[1 - end], 1, 0);
  }
  if (has_rings && pair.ports[end] >= 0) return static_cast<uint16_t>(pair.ports[end]);
  pair.ports[end] = no_port;
  if (pair.ports[1 - end] == no_port) {
    for (rte_ring* ring : pair.rings) free_ring(ring);
    all.by_name.erase(at);
  }
  return Error{Status::no_resources, std::string("dpdk: cannot make rings: ") +
                                         rte_strerror(rte_errno) +
                                         ". Fix: more memory for EAL, as in eal=-m 2048"};
}

void drain_ring_end(const std::string& name, uint16_t port) {
  Pairs& all = pairs();
  const std::lock_guard lock(all.mutex);
  const auto at = all.by_name.find(name);
  if (at == all.by_name.end()) return;
  drain(at->second.rings[at->second.ports[0] == port ? 1 : 0]);
}

void close_ring_end(const std::string& name, uint16_t port) {
  Pairs& all = pairs();
  const std::lock_guard lock(all.mutex);
  const auto at = all.by_name.find(name);
  if (at == all.by_name.end()) return;
  Pair& pair = at->second;
  for (int& one : pair.ports) {
    if (one == port) one = no_port;
  }
  if (pair.ports[0] != no_port || pair.ports[1] != no_port) return;
  for (rte_ring* ring : pair.rings) free_ring(ring);
  all.by_name.erase(at);
}

}  // namespace urma::drivers::dpdk
