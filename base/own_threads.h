// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>

#include "base/signals_blocked.h"

namespace urma {

// The threads of this copy of the library, by their numbers in the system: names do not tell them
// apart, because a program may give its threads the same ones, and contain another copy, as the
// shared objects of verbs: and dpdk: do.

// Returns whether a thread of this process is one of them. Also right in the child of a fork().
bool is_own_thread(pid_t thread);

// Starts a thread that takes no signals and has this name, and returns when it is recorded. Returns
// an error number, or 0.
int start_own_thread(pthread_t& out, const char* name, void* (*entry)(void*), void* argument);

}  // namespace urma
