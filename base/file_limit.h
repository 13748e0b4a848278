// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/resource.h>

#include <cstdint>

namespace urma {

// Returns whether this process may make a file of this size (ulimit -f). A process that tries to
// make a larger one gets not only an error but SIGXFSZ, which ends it.
inline bool file_may_have(uint64_t bytes) {
  rlimit limit{};
  return getrlimit(RLIMIT_FSIZE, &limit) != 0 || bytes <= limit.rlim_cur;
}

}  // namespace urma
