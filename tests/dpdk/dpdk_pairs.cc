// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include "tests/drivers/conformance_pairs.h"

namespace urma::test {

// Ports whose peer is in the same process.
void for_each_pair(const std::function<void(const std::string&, const std::string&)>& on) {
  on("dpdk:net_ring0,pair=suite?ip=10.9.0.1/24", "dpdk:net_ring1,pair=suite?ip=10.9.0.2/24");
  on("dpdk:net_ring0,pair=six?ip=fd00::1/64&vlan=7&entropy=yes",
     "dpdk:net_ring1,pair=six?ip=fd00::2/64&vlan=7&entropy=yes");
  on("dpdk:net_ring0,pair=sums?ip=fd00::1/64&gather=always",
     "dpdk:net_ring1,pair=sums?ip=fd00::2/64&gather=always");
  on("dpdk:net_ring0,pair=late?ip=10.9.0.1/24&gather=always",
     "dpdk:net_ring1,pair=late?ip=10.9.0.2/24&gather=always");
  on("sim(net=suite):dpdk:net_ring0,pair=time?ip=10.9.0.1/24&gather=always",
     "sim(net=suite):dpdk:net_ring1,pair=time?ip=10.9.0.2/24&gather=always");
  const std::string socket = "/tmp/urma-test-" + std::to_string(getpid()) + "-vhost";
  on("dpdk:net_vhost0,iface=" + socket + "?ip=10.9.0.1/24&gather=always",
     "dpdk:net_virtio_user0,path=" + socket + "?ip=10.9.0.2/24&mtu=9000");
  // Both ends leave checksums to the port, so no packet has a correct one.
  on("dpdk:net_vhost0,iface=" + socket + "?ip=fd00::1/64&gather=always",
     "dpdk:net_virtio_user0,path=" + socket + "?ip=fd00::2/64");
  const std::string memif = "/tmp/urma-test-" + std::to_string(getpid()) + "-memif";
  on("dpdk:net_memif0,role=server,socket=" + memif + "?ip=10.9.0.1/24",
     "dpdk:net_memif1,role=client,socket=" + memif + "?ip=10.9.0.2/24");
}

}  // namespace urma::test
