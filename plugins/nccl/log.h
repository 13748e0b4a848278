// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plugins/nccl/abi.h"

namespace urma::nccl {

// NCCL's log, which `init` names. Before that, lines are dropped. Any thread calls these functions.
// They never throw.

// From now on, lines go to this function, unless it is null.
void log_to(Logger logger);
// Writes a line that NCCL prints with NCCL_DEBUG=WARN: why a call or a request fails, and what to
// do.
[[gnu::format(printf, 1, 2)]] void warn(const char* format, ...);
// Writes a line that NCCL prints with NCCL_DEBUG=INFO.
[[gnu::format(printf, 1, 2)]] void inform(const char* format, ...);

}  // namespace urma::nccl
