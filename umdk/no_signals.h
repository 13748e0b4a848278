// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>
#include <signal.h>

namespace urma::umdk {

// While this object exists, the calling thread runs no handler at all: unlike with SignalsBlocked,
// also none of a SIGSEGV or SIGBUS that another process sends. A fault ends the process meanwhile,
// so this is not for a thread that the library starts.
class NoSignals {
 public:
  NoSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~NoSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  NoSignals(const NoSignals&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace urma::umdk
