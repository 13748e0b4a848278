// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>
#include <signal.h>

#include <initializer_list>

namespace urma {

// While this object exists, the calling thread takes no signals. Threads that it starts meanwhile
// never take signals. For threads of the library: signals are the application's, which may block
// them later and wait for them in a thread of its own.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    // Signals that a thread raises by its own instructions are not blocked: that would end the
    // process without running the handler.
    for (const int own : {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP}) sigdelset(&all, own);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  SignalsBlocked(const SignalsBlocked&) = delete;
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

}  // namespace urma
