// SPDX-License-Identifier: Apache-2.0
#include "fabric/topology.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/assert.h"

namespace urma::fabric {
namespace {

constexpr uint32_t unreachable = UINT32_MAX;

// Adds a switch and returns its node. All hosts must have been added.
uint32_t add_switch(Topology& topology) {
  topology.switch_ports.push_back(0);
  return topology.nodes() - 1;
}

void connect(Topology& topology, uint32_t a, uint32_t b, const CableKind& kind) {
  const auto end_at = [&](uint32_t node) {
    const bool host = node < topology.hosts;
    return Cable::End{node, host ? 0 : topology.switch_ports[node - topology.hosts]++};
  };
  const Cable::End first = end_at(a);
  topology.cables.push_back({first, end_at(b), kind.bytes_per_second, kind.delay});
}

// The neighbours of each node, with the node's port that leads to each.
class Neighbours {
 public:
  struct Neighbour {
    uint32_t node;
    uint32_t port;
  };

  explicit Neighbours(const Topology& topology) : of_(topology.nodes()) {
    for (const Cable& cable : topology.cables) {
      of_[cable.a.node].push_back({cable.b.node, cable.a.port});
      of_[cable.b.node].push_back({cable.a.node, cable.b.port});
    }
  }
  std::span<const Neighbour> of(uint32_t node) const { return of_[node]; }

 private:
  std::vector<std::vector<Neighbour>> of_;
};

// Returns the number of cables from each switch to `node`. Hosts forward nothing.
std::vector<uint32_t> distances(const Topology& topology, const Neighbours& neighbours,
                                uint32_t node) {
  std::vector<uint32_t> distance(topology.nodes(), unreachable);
  std::vector<uint32_t> order{node};
  distance[node] = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    for (const auto& neighbour : neighbours.of(order[i])) {
      if (neighbour.node < topology.hosts || distance[neighbour.node] != unreachable) continue;
      distance[neighbour.node] = distance[order[i]] + 1;
      order.push_back(neighbour.node);
    }
  }
  return distance;
}

// Sets the routes of all switches to the hosts from `first` to `last`, which are at switch `home`.
void route_to(const Topology& topology, const Neighbours& neighbours, uint32_t home, uint32_t first,
              uint32_t last, std::vector<Switch>& switches) {
  const std::vector<uint32_t> distance = distances(topology, neighbours, home);
  std::vector<uint16_t> ports;
  for (uint32_t node = topology.hosts; node < topology.nodes(); ++node) {
    if (node == home || distance[node] == unreachable) continue;
    ports.clear();
    for (const auto& neighbour : neighbours.of(node)) {
      if (distance[neighbour.node] == distance[node] - 1) {
        ports.push_back(static_cast<uint16_t>(neighbour.port));
      }
    }
    switches[node - topology.hosts].routes().set(Topology::address_of(first),
                                                 Topology::address_of(last), ports);
  }
}

}  // namespace

Topology star(uint32_t hosts, const CableKind& cable) {
  Topology topology;
  topology.hosts = hosts;
  const uint32_t middle = add_switch(topology);
  for (uint32_t host = 0; host < hosts; ++host) connect(topology, host, middle, cable);
  return topology;
}

Topology parking_lot(const ParkingLot& settings) {
  Topology topology;
  topology.hosts = 2 + 2 * settings.hops * settings.pairs;
  std::vector<uint32_t> chain;
  for (uint32_t i = 0; i <= settings.hops; ++i) chain.push_back(add_switch(topology));
  connect(topology, 0, chain.front(), settings.host_cable);
  connect(topology, 1, chain.back(), settings.host_cable);
  for (uint32_t hop = 0; hop < settings.hops; ++hop) {
    connect(topology, chain[hop], chain[hop + 1], settings.trunk_cable);
    for (uint32_t pair = 0; pair < settings.pairs; ++pair) {
      const uint32_t sender = settings.crossing(hop, pair);
      connect(topology, sender, chain[hop], settings.host_cable);
      connect(topology, sender + 1, chain[hop + 1], settings.host_cable);
    }
  }
  return topology;
}

Topology leaf_spine(const LeafSpine& settings) {
  Topology topology;
  topology.hosts = settings.leaves * settings.hosts_per_leaf;
  for (uint32_t leaf = 0; leaf < settings.leaves; ++leaf) {
    const uint32_t node = add_switch(topology);
    for (uint32_t i = 0; i < settings.hosts_per_leaf; ++i) {
      connect(topology, leaf * settings.hosts_per_leaf + i, node, settings.host_cable);
    }
  }
  for (uint32_t spine = 0; spine < settings.spines; ++spine) {
    const uint32_t node = add_switch(topology);
    for (uint32_t leaf = 0; leaf < settings.leaves; ++leaf) {
      connect(topology, topology.hosts + leaf, node, settings.spine_cable);
    }
  }
  return topology;
}

std::vector<Switch> make_switches(const Topology& topology, const SwitchSettings& settings,
                                  const SwitchPort& each_port) {
  std::vector<Switch> switches;
  for (uint32_t i = 0; i < topology.switch_ports.size(); ++i) {
    SwitchSettings its = settings;
    its.ports = topology.switch_ports[i];
    its.addresses = topology.hosts + 1;
    its.seed = settings.seed + i;
    switches.emplace_back(its);
  }
  std::vector<uint32_t> home(topology.hosts, unreachable);
  for (const Cable& cable : topology.cables) {
    for (const auto& [end, other] : {std::pair(cable.a, cable.b), std::pair(cable.b, cable.a)}) {
      if (end.node < topology.hosts) continue;
      Switch& at = switches[end.node - topology.hosts];
      const bool host = other.node < topology.hosts;
      SwitchPort port = each_port;
      port.bytes_per_second = cable.bytes_per_second;
      port.host = host;
      at.connect(end.port, port);
      if (!host) continue;
      home[other.node] = end.node;
      at.routes().attach(Topology::address_of(other.node), end.port);
    }
  }
  const Neighbours neighbours(topology);
  for (uint32_t first = 0, next = 0; first < topology.hosts; first = next) {
    URMA_ASSERT(home[first] != unreachable, "each host has a cable to a switch");
    while (next < topology.hosts && home[next] == home[first]) ++next;
    route_to(topology, neighbours, home[first], first, next - 1, switches);
  }
  return switches;
}

}  // namespace urma::fabric
