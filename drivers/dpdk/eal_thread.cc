// SPDX-License-Identifier: Apache-2.0
#include "drivers/dpdk/eal_thread.h"

#include <rte_lcore.h>

namespace urma::drivers::dpdk {
namespace {

struct Registration {
  bool registered;
  // The thread that started EAL has a number already.
  Registration() : registered(rte_lcore_id() == LCORE_ID_ANY && rte_thread_register() == 0) {}
  ~Registration() {
    if (registered) rte_thread_unregister();
  }
};

}  // namespace

void register_thread() {
  static thread_local const Registration registration;
  (void)registration;
}

}  // namespace urma::drivers::dpdk
