// SPDX-License-Identifier: Apache-2.0
#include "drivers/verbs/plugin.h"

#include "drivers/verbs/datagram_port.h"
#include "drivers/verbs/raw_datagrams.h"

namespace urma::drivers::verbs {

extern "C" __attribute__((visibility("default"))) PluginFunction urma_verbs_plugin;
const void* urma_verbs_plugin() {
  static constexpr Plugin plugin = {
      .stamp = URMA_PLUGIN_STAMP, .open = DatagramPort::open, .open_raw = RawDatagrams::open};
  return &plugin;
}

}  // namespace urma::drivers::verbs
