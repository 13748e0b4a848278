// SPDX-License-Identifier: Apache-2.0
// Measures how many packets a second of processor time a simulated fabric forwards: each host has a
// window of packets on the way to another one, which answers each with a small packet.

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <utility>
#include <vector>

#include "base/prng.h"
#include "fabric/network.h"

namespace urma::fabric {
namespace {

struct Case {
  const char* name;
  Topology topology;
  std::vector<uint32_t> to;  // for each host, whether it sends, and to which one
  uint32_t window;
};

constexpr uint32_t silent = UINT32_MAX;
constexpr uint64_t answer = 1ull << 63;

Packet between(uint32_t from, uint32_t to, uint32_t bytes, uint64_t handle) {
  return {.source = Topology::address_of(from),
          .destination = Topology::address_of(to),
          .bytes = bytes,
          .per_packet = true,
          .handle = handle};
}

void measure(const Case& it, const char* meter, uint64_t hops) {
  Network network(it.topology, {.switches = {.packet_bytes = 4160, .meter = meter}});
  uint64_t pending = 0;
  for (uint32_t host = 0; host < it.to.size(); ++host) {
    if (it.to[host] == silent) continue;
    for (uint32_t i = 0; i < it.window; ++i, ++pending) {
      network.send(host, between(host, it.to[host], 4160, i));
    }
  }
  Network::Happening now;
  const std::clock_t begin = std::clock();
  while (network.hops() < hops && network.next(never, now)) {
    const uint32_t other = Topology::host_of(now.packet.source);
    const bool answered = now.packet.handle & answer;
    network.send(now.host,
                 between(now.host, other, answered ? 4160 : 64, now.packet.handle ^ answer));
  }
  const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  std::printf("%-20s %-8s %8lu pending  %6.2f M hops/s\n", it.name, meter, pending,
              static_cast<double>(network.hops()) / seconds / 1e6);
}

std::vector<uint32_t> random_partners(uint32_t hosts) {
  std::vector<uint32_t> order(hosts);
  for (uint32_t i = 0; i < hosts; ++i) order[i] = i;
  Prng prng(1);
  for (uint32_t i = hosts; i > 1; --i) std::swap(order[i - 1], order[prng.below(i)]);
  std::vector<uint32_t> to(hosts);
  for (uint32_t i = 0; i < hosts; ++i) to[order[i]] = order[(i + 1) % hosts];
  return to;
}

}  // namespace
}  // namespace urma::fabric

int main(int argc, char** argv) {
  using namespace urma::fabric;
  const uint64_t hops = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 10'000'000;
  std::vector<uint32_t> all_to_first(33, 0);
  all_to_first[0] = silent;
  const Case cases[] = {
      {"star 32:1", star(33, {}), all_to_first, 12},
      {"star 128", star(128, {}), random_partners(128), 12},
      {"leaf-spine 1024", leaf_spine({.leaves = 32, .hosts_per_leaf = 32, .spines = 32}),
       random_partners(1024), 24},
      {"leaf-spine 8192", leaf_spine({.leaves = 256, .hosts_per_leaf = 32, .spines = 32}),
       random_partners(8192), 24}};
  for (const Case& it : cases) {
    for (const char* meter : {"none", "caqm_r"}) {
      if (urma::congestion::find_port_meter(meter) != nullptr) measure(it, meter, hops);
    }
  }
}
