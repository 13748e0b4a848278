// SPDX-License-Identifier: Apache-2.0
#include "drivers/dpdk/interrupt_thread.h"

#include <rte_alarm.h>

#include <semaphore>

namespace urma::drivers::dpdk {
namespace {

struct Call {
  const std::function<void()>& call;
  std::binary_semaphore done{0};
};

void execute(void* self) {
  auto& one = *static_cast<Call*>(self);
  one.call();
  one.done.release();
}

}  // namespace

void on_interrupt_thread(const std::function<void()>& call) {
  Call one{call};
  if (rte_eal_alarm_set(1, execute, &one) != 0) return call();
  one.done.acquire();
}

// The thread learns of several events at once, and handles them in any order. So the first call may
// come before the others, and the second one comes after them.
void await_events() {
  on_interrupt_thread([] {});
  on_interrupt_thread([] {});
}

}  // namespace urma::drivers::dpdk
