// SPDX-License-Identifier: Apache-2.0
#include "drivers/verbs/loader.h"

#include "drivers/plugin_object.h"

namespace urma::drivers::verbs {

Result<const Plugin*> load_plugin() {
  static const Result<const void*> table = load_plugin_object({
      .driver = "verbs",
      .file = URMA_PLUGIN_FILE,
      .symbol = plugin_symbol,
      .stamp = URMA_PLUGIN_STAMP,
      .built = URMA_HAS_VERBS,
      .sdk = "rdma-core",
      .sdk_library = "librdmacm",
      .packages = "librdmacm1 ibverbs-providers",
      .to_build = "apt-get install libibverbs-dev librdmacm-dev, then build it with "
                  "cmake -DURMA_WITH_VERBS=ON",
  });
  if (!table) return table.error();
  return static_cast<const Plugin*>(*table);
}

}  // namespace urma::drivers::verbs
