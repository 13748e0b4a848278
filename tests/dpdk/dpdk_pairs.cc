#include <unistd.h>

#include "tests/drivers/conformance_pairs.h"

namespace urma::test {

// Ports whose peer is in the same process. A pair of net_memif is not among them: its threads free
// memory that the other port still reads, when one port is closed (docs/dpdk.md).
void for_each_pair(const std::function<void(const std::string&, const std::string&)>& on) {
  on("dpdk:net_ring0,pair=suite?ip=10.9.0.1/24", "dpdk:net_ring1,pair=suite?ip=10.9.0.2/24");
  on("dpdk:net_ring0,pair=six?ip=fd00::1/64&vlan=7&entropy=yes",
     "dpdk:net_ring1,pair=six?ip=fd00::2/64&vlan=7&entropy=yes");
  on("dpdk:net_ring0,pair=late?ip=10.9.0.1/24&gather=always",
     "dpdk:net_ring1,pair=late?ip=10.9.0.2/24&gather=always");
  const std::string socket = "/tmp/urma-test-" + std::to_string(getpid()) + "-vhost";
  on("dpdk:net_vhost0,iface=" + socket + "?ip=10.9.0.1/24&gather=always",
     "dpdk:net_virtio_user0,path=" + socket + "?ip=10.9.0.2/24&mtu=9000");
}

}  // namespace urma::test
