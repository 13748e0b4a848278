// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstdint>

#include "urma/core/time.h"

namespace urma {

// Sleeps while `word` holds `value`, at most `limit`. May return spuriously, so the caller checks
// its condition again.
inline void futex_wait(const std::atomic<uint32_t>& word, uint32_t value, Duration limit) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(limit);
  const timespec timeout{static_cast<time_t>(seconds.count()),
                         static_cast<long>((limit - seconds).count())};
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, &timeout, nullptr, 0);
}

inline void futex_wake_all(const std::atomic<uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

// Returns whether this process may write to the page of this byte. The kernel tries it: it
// atomically ors zero into a word there, which is harmless if other threads use the word meanwhile.
// Returns false if the page is read-only or not mapped.
inline bool may_store(const std::byte* at) {
  // `word |= 0`. If the word was 2047, a thread that sleeps at it wakes spuriously.
  constexpr uint32_t op = FUTEX_OP_OR << 28 | FUTEX_OP_CMP_EQ << 24 | 2047;
  std::atomic<uint32_t> nobody{0};
  const auto word = reinterpret_cast<uintptr_t>(at) & ~uintptr_t{3};
  return syscall(SYS_futex, &nobody, FUTEX_WAKE_OP_PRIVATE, 0, nullptr, word, op) >= 0 ||
         errno != EFAULT;
}

}  // namespace urma
