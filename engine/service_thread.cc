// SPDX-License-Identifier: Apache-2.0
#include "engine/service_thread.h"

#include <sched.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "base/clock.h"
#include "base/failed.h"
#include "base/own_threads.h"
#include "engine/pollers.h"
#include "engine/spinning.h"

namespace urma::engine {
namespace {

// The time between two looks at the timer doubles up to this while the application polls, because
// each look costs the polling thread 15 us and more on a virtual machine.
constexpr Duration most_patience = 16 * Keeper::take_over_after;
// An application that polled so recently is still polling.
constexpr Duration between_polls = std::chrono::microseconds(20);

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// The service thread spins beside a thread of the application, hence two.
bool service_may_spin() { return may_spin(2); }

}  // namespace

Result<void> ServiceThread::start() {
  if (auto started = keeper_.start(); !started) return started;
  const auto entry = [](void* self) -> void* {
    static_cast<ServiceThread*>(self)->serve();
    return nullptr;
  };
  if (const int why = start_own_thread(thread_, "urma-engine", entry, this); why != 0) {
    return failed(Status::no_resources,
                  "open: cannot start the device's thread: ", std::strerror(why))
        .fix(
            "allow more threads (ulimit -u, a container's pids limit) or address space "
            "(ulimit -v), or open it with Threads::inlined");
  }
  running_ = true;
  return {};
}

void ServiceThread::stop() {
  if (!running_) return;
  keeper_.stop();
  waker_.wake();
  pthread_join(thread_, nullptr);
  running_ = false;
}

void ServiceThread::serve() {
  using Ran = Passes::Ran;
  Time idle_since = never;
  while (!keeper_.stopping()) {
    // A thread began to wait while the service thread took over, or the application handed over
    // while another of its threads sleeps there. That thread runs the passes; this thread would
    // spin beside it.
    if (descriptors_.seems_occupied()) keeper_.give_back();
    if (!keeper_.service_keeps()) {
      watch();
      continue;
    }
    const Ran ran = passes_.try_pass(nullptr);
    if (ran == Ran::by_another) sched_yield();
    if (ran == Ran::busy) {
      idle_since = never;
      if (read_clock() - passes_.polled_at() > between_polls) keeper_.polls_paused();
    }
    if (ran != Ran::idle) continue;
    const bool polled = descriptors_.port_is_polled();
    if (polled || service_may_spin()) {
      const Time now = read_clock();
      idle_since = std::min(idle_since, now);
      if (now - idle_since < (polled ? spin_before_nap : spin_before_sleep)) {
        polled ? Pollers::give_way() : pause();
        continue;
      }
    }
    if (!descriptors_.occupy()) continue;
    descriptors_.sleep_until_alarm(nullptr, never);
    descriptors_.leave();
  }
}

// Returns when no thread polls or waits any more, the application hands over, or the thread is to
// stop. A thread that causes one of these first stores the change and then sets the timer; this
// function checks all of them each time after it has set the timer.
void ServiceThread::watch() {
  Duration patience = Keeper::take_over_after;
  keeper_.set_timer(patience);
  while (!keeper_.service_keeps() && !keeper_.stopping()) {
    keeper_.await_timer();
    // The thread that sleeps at the descriptors sets the timer when it leaves.
    if (descriptors_.occupied()) continue;
    const Duration silent = read_clock() - passes_.polled_at();
    if (silent >= Keeper::take_over_after) return keeper_.take_over(passes_.polled_at());
    patience =
        silent < between_polls ? std::min(2 * patience, most_patience) : Keeper::take_over_after;
    keeper_.set_timer(patience);
  }
}

}  // namespace urma::engine
