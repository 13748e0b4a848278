// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

namespace urma::drivers::dpdk {

// Runs `call` on the interrupt thread of EAL, between the events that this thread handles, and
// waits for its end.
void on_interrupt_thread(const std::function<void()>& call);
// Waits until that thread has handled the events that are there now.
void await_events();

}  // namespace urma::drivers::dpdk
