// SPDX-License-Identifier: Apache-2.0
#include "engine/keeper.h"

#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/above_standard.h"
#include "base/clock.h"
#include "base/failed.h"

namespace urma::engine {
namespace {

// After more empty polls than this, the application is the keeper again. It doubles with each brief
// time, up to polls of half a millisecond.
constexpr uint32_t polls_of_a_poller = 32;
constexpr uint32_t most_doublings = 8;

}  // namespace

Keeper::~Keeper() {
  if (timer_ >= 0) ::close(timer_);
}

Result<void> Keeper::start() {
  timer_ = above_standard(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC));
  if (timer_ >= 0) return {};
  return failed(Status::no_resources, "open: cannot make a timer: ", std::strerror(errno))
      .fix("close descriptors, or allow more (ulimit -n)");
}

void Keeper::polled_empty() {
  if (threads_ != Threads::automatic || !service_keeps()) return;
  const uint32_t polls = empty_polls_.load(std::memory_order_relaxed) + 1;
  empty_polls_.store(polls, std::memory_order_relaxed);
  if (polls > polls_of_a_poller << brief_times_.load(std::memory_order_relaxed)) recall();
}

void Keeper::recall() {
  if (!service_keeps_.exchange(false)) return;
  recalled_at_.store(read_clock(), std::memory_order_relaxed);
  waker_.wake();
}

// The keeper is written before the timer is set: a service thread that was recalled just before,
// and does not sleep at its timer yet, remains the keeper.
void Keeper::hand_over() {
  if (threads_ != Threads::automatic) return;
  // An application that polls once before each sleep must not become the keeper by that.
  empty_polls_.store(0, std::memory_order_relaxed);
  if (service_keeps()) return;
  service_keeps_.store(true);
  set_timer(Duration(1));
}

// A thread that waits while the device closes comes here again and again, because no thread sleeps
// at the descriptors then. If it set the timer each time, the timer would never fire.
void Keeper::left_descriptors() {
  if (timer_ >= 0 && !service_keeps() && !stopping()) set_timer(take_over_after);
}

void Keeper::stop() {
  stop_.store(true);
  set_timer(Duration(1));
}

void Keeper::take_over(Time polled_at) {
  const Time recalled = recalled_at_.load(std::memory_order_relaxed);
  const bool briefly = recalled != Time{} && polled_at - recalled < brief;
  const uint32_t before = brief_times_.load(std::memory_order_relaxed);
  brief_times_.store(briefly ? std::min(before + 1, most_doublings) : 0, std::memory_order_relaxed);
  empty_polls_.store(0, std::memory_order_relaxed);
  service_keeps_.store(true, std::memory_order_relaxed);
}

void Keeper::set_timer(Duration after) {
  const itimerspec at{.it_interval = {}, .it_value = {0, static_cast<long>(after.count())}};
  timerfd_settime(timer_, 0, &at, nullptr);
}

void Keeper::await_timer() {
  uint64_t fired = 0;
  [[maybe_unused]] const ssize_t got = ::read(timer_, &fired, sizeof fired);
}

}  // namespace urma::engine
