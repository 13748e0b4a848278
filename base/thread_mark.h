// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace urma {

struct ThreadMark {
  char byte = 0;
};

// Returns an address that no other thread has at the same time, as pthread_self does, but without a
// call. The C library keeps room for such variables of libraries that are loaded late.
inline const ThreadMark* this_thread() {
  [[gnu::tls_model("initial-exec")]] static constinit thread_local ThreadMark mark;
  return &mark;
}

}  // namespace urma
