// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace urma {

// Fetches a cache line that will be read, or written, a little later. Any address is allowed.
inline void prefetch_to_read(const void* at) { __builtin_prefetch(at, 0); }
inline void prefetch_to_write(const void* at) {
#if defined(__x86_64__)
  // The instruction is older than the processors that we compile for, but its compiler flag would
  // exclude some of them.
  asm volatile("prefetchw %0" ::"m"(*static_cast<const char*>(at)));
#else
  __builtin_prefetch(at, 1);
#endif
}

}  // namespace urma
