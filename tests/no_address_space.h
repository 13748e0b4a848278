// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/resource.h>
#include <unistd.h>

#include <fstream>

#include "tests/sanitized.h"

namespace urma::test {

// While this object exists, this process gets almost no further address space, so pages cannot be
// moved.
class NoAddressSpace {
 public:
  // Sanitizers need address space at unpredictable times.
  static constexpr bool possible = !sanitized;
  NoAddressSpace() {
    getrlimit(RLIMIT_AS, &before_);
    rlim_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    rlimit less = before_;
    less.rlim_cur = pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + (256 << 10);
    if (possible) setrlimit(RLIMIT_AS, &less);
  }
  NoAddressSpace(const NoAddressSpace&) = delete;
  NoAddressSpace& operator=(const NoAddressSpace&) = delete;
  ~NoAddressSpace() { setrlimit(RLIMIT_AS, &before_); }

 private:
  rlimit before_{};
};

}  // namespace urma::test
