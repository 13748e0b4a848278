#include "apps/urma_perf/interrupt.h"

#include <unistd.h>

#include <atomic>
#include <csignal>

#include "apps/urma_perf/failure.h"

namespace urma::perf {
namespace {

std::atomic<int> signals{0};
static_assert(std::atomic<int>::is_always_lock_free, "used in a signal handler");

void count_signal(int) {
  if (signals.fetch_add(1) > 0) _exit(static_cast<int>(Exit::interrupted));
}

}  // namespace

void handle_signals() {
  struct sigaction action {};
  action.sa_handler = count_signal;  // without SA_RESTART: who sleeps in a call wakes up
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
}

bool interrupted() { return signals.load(std::memory_order_relaxed) > 0; }

}  // namespace urma::perf
