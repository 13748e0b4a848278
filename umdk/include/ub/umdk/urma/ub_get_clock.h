// SPDX-License-Identifier: Apache-2.0
#pragma once

// The processor's counter of ticks.

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

static inline uint64_t get_cycles(void) {
#if defined(__x86_64__)
  uint32_t low, high;
  __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
  return (uint64_t)high << 32 | low;
#elif defined(__aarch64__)
  uint64_t ticks;
  __asm__ volatile("isb\n\tmrs %0, cntvct_el0" : "=r"(ticks) : : "memory");
  return ticks;
#else
#error "the counter of this processor is not known. Fix: add it here"
#endif
}

// Measures how many ticks the counter makes in a microsecond, which takes 20 ms. `cpu_freq_warn`
// writes a warning to stderr if it does not run evenly. Function of liburma_common.
double get_cpu_mhz(bool cpu_freq_warn);

#ifdef __cplusplus
}
#endif
