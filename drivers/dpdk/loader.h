// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "drivers/dpdk/plugin.h"

namespace urma::drivers::dpdk {

// Loads the shared object of this driver, once per process. Errors: those of load_plugin_object.
// Any thread may call it.
Result<const Plugin*> load_plugin();
// The same for an object of any name, each time.
Result<const Plugin*> load_plugin_from(const char* object);

}  // namespace urma::drivers::dpdk
