// SPDX-License-Identifier: Apache-2.0
#pragma once

// The log, for libraries that write to it as liburma does (dlock). It goes to the function that the
// program registered, or to stderr.

#include <stdbool.h>

#include "urma_types.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

// Returns true if messages of this level are not written.
bool urma_log_drop(urma_vlog_level_t level);
// Writes a message of printf's format, if its level is written.
__attribute__((format(printf, 4, 5))) void urma_log(const char* function, int line,
                                                    urma_vlog_level_t level, const char* format,
                                                    ...);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
