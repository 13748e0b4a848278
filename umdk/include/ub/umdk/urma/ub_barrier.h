// SPDX-License-Identifier: Apache-2.0
#pragma once

// These order the accesses of a thread to memory, as other threads see them.

static inline void ub_compiler_barrier(void) { __asm__ volatile("" : : : "memory"); }
static inline void ub_smp_mb(void) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
static inline void ub_smp_wmb(void) { __atomic_thread_fence(__ATOMIC_RELEASE); }
static inline void ub_smp_rmb(void) { __atomic_thread_fence(__ATOMIC_ACQUIRE); }
