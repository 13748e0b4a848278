// SPDX-License-Identifier: Apache-2.0
#include "engine/pollers.h"

#include <sched.h>

#include <algorithm>

#include "base/clock.h"

namespace urma::engine {
namespace {

// A thread that polls gives way after this many empty polls, as long as no other thread is found to
// wait for its processor.
constexpr uint32_t polls_before_giving_way = 32;
// For this many empty polls of one thread, threads that polled before count as still polling.
constexpr uint32_t polls_in_company = 1024;
// A `sched_yield` that took longer has run another thread; otherwise it takes 0.2 to 0.5 us.
constexpr Duration yield_with_switch = std::chrono::microseconds(2);

}  // namespace

bool Pollers::several() {
  const pthread_t self = pthread_self();
  if (latest_.load(std::memory_order_relaxed) != self) {
    latest_.store(self, std::memory_order_relaxed);
    company_.store(polls_in_company, std::memory_order_relaxed);
    return true;
  }
  const uint32_t company = company_.load(std::memory_order_relaxed);
  if (company > 0) company_.store(company - 1, std::memory_order_relaxed);
  return company > 0;
}

// Threads that poll, find nothing, and outnumber the processors would each use up a time slice of
// the scheduler (milliseconds), while the thread that has something to do waits for a processor:
// 128 threads on two processors then need 180 passes for each work. If a thread was waiting for the
// processor when this one gave way, this one gives way again after its next poll.
void Pollers::give_way() {
  struct Polls {
    uint32_t empty = 0;  // since it gave way
    uint32_t most = polls_before_giving_way;
  };
  thread_local Polls polls;
  if (++polls.empty < polls.most) return;
  polls.empty = 0;
  const Time before = read_clock();
  sched_yield();
  const bool switched = read_clock() - before > yield_with_switch;
  polls.most = switched ? 1 : std::min(2 * polls.most, polls_before_giving_way);
}

}  // namespace urma::engine
