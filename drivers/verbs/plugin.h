// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "drivers/packet_port.h"
#include "drivers/verbs/raw_port.h"
#include "drivers/verbs/settings.h"

namespace urma::drivers::verbs {

// The table that liburma finds in the shared object of this driver (PluginObject).
struct Plugin {
  const char* stamp;
  // Errors: those of urma::open.
  Result<std::unique_ptr<PacketPort>> (*open)(const Settings& settings);
  // As open_raw_port, on the adapter of a device with these settings.
  Result<std::unique_ptr<RawDatagramPort>> (*open_raw)(const Settings& settings);
};

// The name of the function that returns the table.
inline constexpr const char* plugin_symbol = "urma_verbs_plugin";
using PluginFunction = const void*();

}  // namespace urma::drivers::verbs
