// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <linux/futex.h>
#include <poll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdint>

#include "base/clock.h"
#include "urma/core/time.h"

namespace urma {

// A futex word, which may lie in memory shared between processes. One thread at a time sleeps at
// it, and any thread may ring it. No event is missed, and a process that dies in between does not
// break the bell:
//
//   sleeper   stores "asleep", fences, looks for its events, sleeps while the word is unchanged
//   ringer    publishes an event, fences, reads the word; if it is not 0, changes it and wakes
//
// Either the sleeper's look finds the event, or the ringer sees the sleeper. A ring between the
// look and the sleep changes the word, so the sleep does not begin.
// A word in state "rang" may come from a ringer that died before it woke the sleeper, or from a
// late ringer that overwrote the next sleep. So the word contains the ringer's number, and each
// ringer trusts only a ring of its own. If the word contained a number of the sleep instead, the
// ring of a dead ringer would look like a ringer's own ring. (tests/exhaustive/bell_test.cc)
class Bell {
 public:
  explicit Bell(std::atomic<uint32_t>& word) : word_(&word) {}

  // ---- sleeper

  // After this call ringers ring the bell. The caller then looks for its events; if there are none
  // it calls `rest`, and afterwards `awake`.
  void drowse() {
    word_->store(asleep, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }
  bool drowsy() const { return (word_->load(std::memory_order_relaxed) & state_mask) != 0; }
  // Sleeps until the bell is rung or the time has come. May return spuriously.
  void rest(Time until) {
    const uint32_t value = word_->load(std::memory_order_relaxed);
    if ((value & state_mask) != asleep) return;
    timespec timeout{};
    timespec* patience = nullptr;
    if (until != never) {
      const Duration left = until - read_clock();
      if (left <= Duration{}) return;
      set(timeout, left);
      patience = &timeout;
    }
    if (syscall(SYS_futex, word_, FUTEX_WAIT, value, patience, nullptr, 0) == 0) return;
    if (errno != EFAULT && errno != EINVAL) return;
    // The kernel may refuse to wait at a word in device memory; then the word is polled.
    set(timeout, until == never ? nap : std::min<Duration>(nap, until - read_clock()));
    ppoll(nullptr, 0, &timeout, nullptr);
  }
  // Returns whether the bell has been rung since `drowse`, for threads that sleep elsewhere.
  bool rung() const { return (word_->load(std::memory_order_relaxed) & state_mask) == rang; }
  void awake() { word_->store(0, std::memory_order_relaxed); }

  // ---- ringer, after publishing the event and a full fence

  // Rings as the ringer of this number, 1 to 2^30 - 1, which no other living ringer of this bell
  // has, or as `anybody`. `rung` belongs to the ringer, and is 0 at first. Makes a system call only
  // if a thread sleeps at the bell.
  static constexpr uint32_t anybody = 0;
  void ring(uint32_t& rung, uint32_t ringer) {
    const uint32_t value = word_->load(std::memory_order_relaxed);
    if ((value & state_mask) == 0 || value == rung) return;
    const uint32_t mark = ringer << state_bits | rang;
    if (ringer != anybody) rung = mark;
    word_->store(mark, std::memory_order_relaxed);
    syscall(SYS_futex, word_, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  }
  void ring() {
    uint32_t never_before = 0;
    ring(never_before, anybody);
  }

 private:
  static constexpr uint32_t state_bits = 2;
  static constexpr uint32_t state_mask = (1 << state_bits) - 1;
  static constexpr uint32_t asleep = 1;
  static constexpr uint32_t rang = 2;
  static constexpr Duration nap = std::chrono::microseconds(100);

  static void set(timespec& out, Duration duration) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(duration);
    out = {static_cast<time_t>(seconds.count()), static_cast<long>((duration - seconds).count())};
  }

  std::atomic<uint32_t>* word_;
};

}  // namespace urma
