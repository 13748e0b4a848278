#pragma once

#include <sys/resource.h>

#include <cstdint>

namespace urma {

// Whether this process may make a file so large (ulimit -f). Who tries to make a larger one is not
// only refused: it is sent SIGXFSZ, which ends it.
inline bool file_may_have(uint64_t bytes) {
  rlimit limit{};
  return getrlimit(RLIMIT_FSIZE, &limit) != 0 || bytes <= limit.rlim_cur;
}

}  // namespace urma
