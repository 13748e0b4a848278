// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace urma::drivers::dpdk {

// Registers the calling thread with EAL, once, until the thread ends. Without that, each allocation
// of a buffer takes 36 ns instead of 6, as only registered threads have caches. If EAL has no room
// for more threads, the thread works without. A call for a thread that is registered takes 1 ns.
void register_thread();

}  // namespace urma::drivers::dpdk
