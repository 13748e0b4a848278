#pragma once

#include <string>

#include "drivers/driver.h"

namespace urma::drivers::dpdk {

// A device string of this driver, taken apart.
struct Settings {
  std::string port;       // as DPDK names it: net_memif0, 0000:3b:00.0
  std::string arguments;  // of the port, as DPDK takes them: role=server,socket=/run/ub.sock
  Eid address{};          // all zeros: to be derived from the port's MAC address
  unsigned prefix_bits = 0;
  Eid gateway{};
  uint32_t ip_mtu = 1500;
  uint16_t queues = 1;
  uint16_t vlan = 0;
  uint8_t dscp = 0;
  bool entropy = false;
  std::string eal = {};      // further arguments of EAL, separated by spaces
  SettingList options = {};  // the options as they were read, for PortFacts::settings

  bool is_pci() const { return port.find(':') != port.npos; }
};

}  // namespace urma::drivers::dpdk
