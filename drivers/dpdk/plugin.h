// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "drivers/dpdk/raw_port.h"
#include "drivers/dpdk/settings.h"
#include "drivers/packet_port.h"

namespace urma::drivers::dpdk {

// The table that liburma finds in the shared object of this driver (PluginObject).
struct Plugin {
  const char* stamp;
  // Errors: those of urma::open.
  Result<std::unique_ptr<PacketPort>> (*open)(const Settings& settings);
  // As open_raw_port, for a device with these settings.
  Result<std::unique_ptr<RawPort>> (*open_raw)(const Settings& settings, uint64_t number);
  // Returns the number of packet buffers that ports of this process lost before they closed. For
  // tests: it is always 0.
  uint64_t (*leaked)();
};

// The name of the function that returns the table.
inline constexpr const char* plugin_symbol = "urma_dpdk_plugin";
using PluginFunction = const void*();

}  // namespace urma::drivers::dpdk
