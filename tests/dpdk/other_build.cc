// SPDX-License-Identifier: Apache-2.0
// The shared object of the driver as another build makes it.

#include "drivers/dpdk/plugin.h"

namespace urma::drivers::dpdk {

extern "C" __attribute__((visibility("default"))) PluginFunction urma_dpdk_plugin;
const void* urma_dpdk_plugin() {
  static constexpr Plugin plugin = {
      .stamp = "0.0.0-of-another", .open = nullptr, .open_raw = nullptr, .leaked = nullptr};
  return &plugin;
}

}  // namespace urma::drivers::dpdk
