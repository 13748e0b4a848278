// SPDX-License-Identifier: Apache-2.0
#include "apps/common/interrupt.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdint>

#include "apps/common/failure.h"

namespace urma::apps {
namespace {

std::atomic<int> signals{0};
std::atomic<int> at_once{0};  // existing objects of EndsAtOnce
static_assert(std::atomic<int>::is_always_lock_free, "used in a signal handler");

int descriptor = -1;

// Called by the signal handler, too.
void wake_sleepers() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(descriptor, &one, sizeof one);
}

void count_signal(int) {
  if (signals.fetch_add(1) > 0 || at_once.load() > 0) _exit(static_cast<int>(Exit::interrupted));
  wake_sleepers();
}

}  // namespace

void handle_signals() {
  descriptor = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  struct sigaction action {};
  action.sa_handler =
      count_signal;  // without SA_RESTART, so that a thread that sleeps in a call wakes up
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

EndsAtOnce::EndsAtOnce() {
  at_once.fetch_add(1);
  // Otherwise a signal that came just before would wait until the call returns.
  if (interrupted()) _exit(static_cast<int>(Exit::interrupted));
}

EndsAtOnce::~EndsAtOnce() { at_once.fetch_sub(1); }

int interrupt_descriptor() { return descriptor; }

void interrupt() {
  signals.fetch_add(1);
  wake_sleepers();
}

bool interrupted() { return signals.load(std::memory_order_relaxed) > 0; }

}  // namespace urma::apps
