// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <cstdlib>

// States an invariant of this library. The check is always on, because on a data path that writes
// into other processes' memory it is worse to continue with a broken invariant than to stop. Never
// used to check input, peers or the environment.
#define URMA_ASSERT(condition, invariant)                                                          \
  do {                                                                                             \
    if (!(condition)) [[unlikely]] {                                                               \
      std::fprintf(stderr, "liburma: broken invariant: %s (%s at %s:%d)\n", invariant, #condition, \
                   __FILE__, __LINE__);                                                            \
      std::abort();                                                                                \
    }                                                                                              \
  } while (false)

// For checks that recompute a whole state (`check()` methods): on in dev and sanitizer builds.
#ifdef URMA_PARANOID
#define URMA_PARANOID_ASSERT(condition, invariant) URMA_ASSERT(condition, invariant)
#else
#define URMA_PARANOID_ASSERT(condition, invariant) \
  do {                                             \
  } while (false)
#endif
