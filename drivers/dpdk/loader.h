#pragma once

#include "drivers/dpdk/plugin.h"

namespace urma::drivers::dpdk {

// Loads the shared object of this driver, once per process, and keeps it: EAL's threads run in it.
// Errors: not_supported (the object or DPDK is not installed, or the object is from another build).
// Any thread may call it.
Result<const Plugin*> load_plugin();
// The same for an object of any name, each time.
Result<const Plugin*> load_plugin_from(const char* object);

}  // namespace urma::drivers::dpdk
