// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "drivers/port_facts.h"

namespace urma::drivers::dpdk {

// Whether packets are sent from the application's memory, or copied into buffers.
enum class Gather : uint8_t {
  automatic,   // what costs less
  always,      // from its memory, where the port can
  registered,  // the same, but only from segments, as a NIC does
  never,
};

// A device string of this driver, taken apart. It does not know whether the port can do this.
struct Settings {
  std::string port;          // as DPDK names it: net_memif0, 0000:3b:00.0
  std::string arguments;     // of the port, as DPDK takes them: role=server,socket=/run/ub.sock
  Eid address{};             // all zeros: to be derived from the port's MAC address
  unsigned prefix_bits = 0;  // addresses with this prefix are on the link
  Eid gateway{};             // to all others; all zeros: they cannot be reached
  uint32_t ip_mtu = 1500;    // the largest IP packet, the same on all hosts of the link
  uint16_t queues = 1;       // pairs of queues, over which the port spreads flows
  uint16_t vlan = 0;         // of all packets; 0: untagged
  uint8_t dscp = 0;          // of sent packets
  uint16_t udp_port = ub_port;
  bool entropy = false;  // the UDP source port tells flows apart; all peers must use dpdk:
  Gather gather = Gather::automatic;
  std::string eal = {};      // further arguments of EAL, separated by spaces
  SettingList options = {};  // the options as they were read, for PortFacts::settings

  bool is_pci() const { return port.find(':') != port.npos; }
};

}  // namespace urma::drivers::dpdk
