// SPDX-License-Identifier: Apache-2.0
#include "drivers/dpdk/loader.h"

#include "drivers/plugin_object.h"

namespace urma::drivers::dpdk {

Result<const Plugin*> load_plugin_from(const char* object) {
  const Result<const void*> table = load_plugin_object({
      .driver = "dpdk",
      .file = object,
      .symbol = plugin_symbol,
      .stamp = URMA_PLUGIN_STAMP,
      .built = URMA_HAS_DPDK,
      .sdk = "DPDK",
      .sdk_library = "librte_",
      .packages = "libdpdk-dev, or the librte-* packages that it names",
      .to_build = "apt-get install libdpdk-dev, then build it with cmake -DURMA_WITH_DPDK=ON",
  });
  if (!table) return table.error();
  return static_cast<const Plugin*>(*table);
}

Result<const Plugin*> load_plugin() {
  static const Result<const Plugin*> loaded = load_plugin_from(URMA_PLUGIN_FILE);
  return loaded;
}

}  // namespace urma::drivers::dpdk
