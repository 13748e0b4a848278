#pragma once

namespace urma {

// Has a line fetched that is read, or written, a little later. Any address will do.
inline void prefetch_to_read(const void* at) { __builtin_prefetch(at, 0); }
inline void prefetch_to_write(const void* at) {
#if defined(__x86_64__)
  // As an instruction it is older than the processors that we compile for, as a flag it is not.
  asm volatile("prefetchw %0" ::"m"(*static_cast<const char*>(at)));
#else
  __builtin_prefetch(at, 1);
#endif
}

}  // namespace urma
