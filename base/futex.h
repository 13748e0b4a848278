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

// Sleeps while `word` holds `value`, at most `limit`; may wake for nothing. The caller looks again.
inline void futex_wait(const std::atomic<uint32_t>& word, uint32_t value, Duration limit) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(limit);
  const timespec timeout{static_cast<time_t>(seconds.count()),
                         static_cast<long>((limit - seconds).count())};
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, &timeout, nullptr, 0);
}

inline void futex_wake_all(const std::atomic<uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

// Whether this process may store where the byte lies, in its page: the kernel tries it, and ors a
// zero into a word there, whatever others do with it meanwhile. False: read-only, or not there.
inline bool may_store(const std::byte* at) {
  // `|= 0`; whoever sleeps there is woken, for nothing, where a word was 2047.
  constexpr uint32_t op = FUTEX_OP_OR << 28 | FUTEX_OP_CMP_EQ << 24 | 2047;
  std::atomic<uint32_t> nobody{0};
  const auto word = reinterpret_cast<uintptr_t>(at) & ~uintptr_t{3};
  return syscall(SYS_futex, &nobody, FUTEX_WAKE_OP_PRIVATE, 0, nullptr, word, op) >= 0 ||
         errno != EFAULT;
}

}  // namespace urma
