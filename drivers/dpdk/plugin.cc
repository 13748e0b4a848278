// SPDX-License-Identifier: Apache-2.0
#include "drivers/dpdk/plugin.h"

#include "drivers/dpdk/dpdk_port.h"
#include "drivers/dpdk/ether_raw_port.h"

namespace urma::drivers::dpdk {

extern "C" __attribute__((visibility("default"))) PluginFunction urma_dpdk_plugin;
const void* urma_dpdk_plugin() {
  static constexpr Plugin plugin = {.stamp = URMA_PLUGIN_STAMP,
                                    .open = DpdkPort::open,
                                    .open_raw = EtherRawPort::open,
                                    .leaked = MbufPool::missing};
  return &plugin;
}

}  // namespace urma::drivers::dpdk
