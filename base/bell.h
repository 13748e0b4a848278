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

// A word, perhaps in memory shared between processes, at which one thread at a time sleeps and
// which anybody may ring. Nothing is missed and nobody who dies on the way takes the bell with it:
//
//   who sleeps   says so, fences, looks for what it waits for, sleeps while the word is unchanged
//   who brings   publishes, fences, reads the word; rings if it says so: changes the word, wakes
//
// Either the sleeper's look sees what was brought, or the bringer sees the sleeper. A ring between
// the look and the sleep changes the word, so the sleep does not begin. A word that says "rung" may
// be one whose ringer died before it woke anybody, or one that a late ringer has written over the
// next sleep: so it says by whom, and each ringer believes only itself. (Which sleep was rung would
// not do: a dead one's ring looks like ours then. tests/exhaustive/bell_test.cc)
class Bell {
 public:
  explicit Bell(std::atomic<uint32_t>& word) : word_(&word) {}

  // ---- who sleeps

  // From here on ringers ring. Look after this; then `rest`, if there was nothing; then `awake`.
  void drowse() {
    word_->store(asleep, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }
  bool drowsy() const { return (word_->load(std::memory_order_relaxed) & state_mask) != 0; }
  // Until it is rung, or the time comes, or for no reason.
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
    // Device memory at which the kernel lets nobody wait: looked at now and then.
    set(timeout, until == never ? nap : std::min<Duration>(nap, until - read_clock()));
    ppoll(nullptr, 0, &timeout, nullptr);
  }
  // Whether somebody has rung since `drowse`: for those who rest elsewhere.
  bool rung() const { return (word_->load(std::memory_order_relaxed) & state_mask) == rang; }
  void awake() { word_->store(0, std::memory_order_relaxed); }

  // ---- who brings something, after it is published and a full fence

  // `who`: a number that no other living ringer of this bell has, 1 to 2^30 - 1, or `anybody`.
  // `rung`: this ringer's own, zero at first. A system call only if somebody sleeps there.
  static constexpr uint32_t anybody = 0;
  void ring(uint32_t& rung, uint32_t who) {
    const uint32_t value = word_->load(std::memory_order_relaxed);
    if ((value & state_mask) == 0 || value == rung) return;
    const uint32_t mark = who << state_bits | rang;
    if (who != anybody) rung = mark;
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
