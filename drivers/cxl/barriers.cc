// SPDX-License-Identifier: Apache-2.0
#include "drivers/cxl/barriers.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace urma::drivers::cxl {
namespace {

bool ask(membarrier_cmd what) { return syscall(SYS_membarrier, what, 0, 0) == 0; }

}  // namespace

// A process that has registered is interrupted for any other one, also for one of another user. A
// filter of system calls may let it register and nothing else, so both are tried.
Barriers::Barriers(const SharedWords& words)
    : words_(words),
      available_(ask(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED) &&
                 ask(MEMBARRIER_CMD_GLOBAL_EXPEDITED)) {}

bool Barriers::after_closing() const {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return !available_ || ask(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
}

}  // namespace urma::drivers::cxl
