// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "fabric/switch.h"
#include "urma/core/time.h"

namespace urma::fabric {

// A cable between two nodes, with a line in each direction.
struct Cable {
  struct End {
    uint32_t node;
    uint32_t port;
  };
  End a;
  End b;
  uint64_t bytes_per_second;
  Duration delay;
};

// The parameters that cables of one kind share.
struct CableKind {
  uint64_t bytes_per_second = 12'500'000'000;  // 100 Gb/s
  Duration delay{1000};
};

// Hosts and switches, and the cables between them. Nodes are numbered: first hosts, each with one
// port, then switches.
struct Topology {
  uint32_t hosts = 0;
  std::vector<uint32_t> switch_ports;  // for each switch, the number of its ports
  std::vector<Cable> cables;

  uint32_t nodes() const { return hosts + static_cast<uint32_t>(switch_ports.size()); }
  // The CNA of a host. 0 is not an address of a host.
  static constexpr uint32_t address_of(uint32_t host) { return host + 1; }
  static constexpr uint32_t host_of(uint32_t address) { return address - 1; }
};

// One switch. Host `n` is at its port `n`.
Topology star(uint32_t hosts, const CableKind& cable);

// A chain of `hops` + 1 switches. Host 0 is at the first and host 1 at the last one. Beside each
// hop there are `pairs` pairs of hosts, one at each end of the hop: pair `p` of hop `h` is the
// hosts `crossing(h, p)`, which is at the hop's beginning, and the next one.
struct ParkingLot {
  uint32_t hops = 3;
  uint32_t pairs = 1;
  CableKind host_cable = {};
  CableKind trunk_cable = {};

  uint32_t crossing(uint32_t hop, uint32_t pair) const { return 2 + 2 * (hop * pairs + pair); }
};
Topology parking_lot(const ParkingLot& settings);

// Two tiers: each leaf has a cable to each spine. Host `n` is at leaf `n / hosts_per_leaf`; leaves
// are switches 0 and up, followed by the spines.
struct LeafSpine {
  uint32_t leaves = 4;
  uint32_t hosts_per_leaf = 4;
  uint32_t spines = 2;
  CableKind host_cable = {};
  CableKind spine_cable = {};
};
Topology leaf_spine(const LeafSpine& settings);

// Makes the switches of a topology, with ports that are up, hosts attached, and a route to each
// host through all ports on shortest paths. The numbers of ports and addresses, whether a port
// leads to a host, and its rate follow from the topology, whatever the settings say. Each switch
// has a seed of its own.
std::vector<Switch> make_switches(const Topology& topology, const SwitchSettings& settings,
                                  const SwitchPort& each_port = {});

}  // namespace urma::fabric
