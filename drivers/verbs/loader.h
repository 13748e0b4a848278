// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "drivers/verbs/plugin.h"

namespace urma::drivers::verbs {

// Loads the shared object of this driver, once per process. Errors: those of load_plugin_object.
// Any thread may call it.
Result<const Plugin*> load_plugin();

}  // namespace urma::drivers::verbs
