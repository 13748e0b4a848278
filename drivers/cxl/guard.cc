// SPDX-License-Identifier: Apache-2.0
#include "drivers/cxl/guard.h"

#include <signal.h>
#include <sys/mman.h>

#include <cerrno>
#include <mutex>

namespace urma::drivers::cxl {
namespace {

std::mutex mutex;  // for threads that make guards; the handler takes none
std::atomic<Guard::Watched*> all{nullptr};
bool installed = false;
struct sigaction before {};

// Replaces the guarded mapping that contains the address by zeros. Returns false if there is none,
// or if the system refuses.
bool mend(const void* address) {
  const auto* const at = static_cast<const std::byte*>(address);
  for (Guard::Watched* one = all.load(); one != nullptr; one = one->next) {
    std::byte* const base = one->base.load();
    const size_t bytes = one->bytes.load();
    if (at < base || at >= base + bytes) continue;
    // `lost` is stored first, so that a thread that reads the zeros also sees that the window is
    // lost.
    one->lost.store(true);
    return mmap(base, bytes, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != MAP_FAILED;
  }
  return false;
}

void pass_on(int number, siginfo_t* info, void* context) {
  if ((before.sa_flags & SA_SIGINFO) != 0) return before.sa_sigaction(number, info, context);
  const bool from_kernel = info->si_code > 0;
  if (before.sa_handler == SIG_IGN && !from_kernel) return;
  if (before.sa_handler != SIG_IGN && before.sa_handler != SIG_DFL) {
    return before.sa_handler(number);
  }
  // Restores the default action: the fault is raised again when the handler returns, and a signal
  // that another process sent is sent again.
  signal(number, SIG_DFL);
  if (!from_kernel) raise(number);
}

void handle(int number, siginfo_t* info, void* context) {
  const int kept = errno;
  if (info->si_code <= 0 || !mend(info->si_addr)) pass_on(number, info, context);
  errno = kept;
}

// The caller holds the mutex. The previous handler is stored before the first fault can occur.
void install() {
  if (std::exchange(installed, true)) return;
  struct sigaction action {};
  action.sa_sigaction = handle;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGBUS, nullptr, &before);
  sigaction(SIGBUS, &action, nullptr);
}

// The caller holds the mutex. The handler stays installed if a later handler may call it.
void uninstall() {
  struct sigaction now {};
  sigaction(SIGBUS, nullptr, &now);
  if ((now.sa_flags & SA_SIGINFO) == 0 || now.sa_sigaction != handle) return;
  sigaction(SIGBUS, &before, nullptr);
  installed = false;
}

bool any_used() {
  for (Guard::Watched* one = all.load(); one != nullptr; one = one->next) {
    if (one->used) return true;
  }
  return false;
}

// The caller holds the mutex.
Guard::Watched* take() {
  for (Guard::Watched* one = all.load(); one != nullptr; one = one->next) {
    if (!std::exchange(one->used, true)) return one;
  }
  auto* const fresh = new Guard::Watched;
  fresh->next = all.load();
  all.store(fresh);
  return fresh;
}

}  // namespace

Guard::Guard(std::byte* base, size_t bytes) {
  const std::lock_guard lock(mutex);
  install();
  watched_ = take();
  watched_->lost.store(false);
  watched_->base.store(base);
  watched_->bytes.store(bytes);
}

Guard::~Guard() {
  if (watched_ == nullptr) return;
  const std::lock_guard lock(mutex);
  watched_->bytes.store(0);
  watched_->used = false;
  if (!any_used()) uninstall();
}

}  // namespace urma::drivers::cxl
