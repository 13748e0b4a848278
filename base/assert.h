#pragma once

#include <cstdio>
#include <cstdlib>

// States an invariant of this library. Always on: on a data path that writes into other processes'
// memory, going on with a broken invariant is worse than stopping. Never used to check input, peers
// or the environment.
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
