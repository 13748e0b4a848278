// SPDX-License-Identifier: Apache-2.0
#pragma once

// NIXL's own headers if the build names them (URMA_NIXL_INCLUDE), otherwise our declarations of the
// same interface.
#ifdef URMA_HAS_NIXL_HEADERS
#include <backend/backend_plugin.h>
#else
#include "plugins/nixl/interface/nixl_interface.h"
#endif
