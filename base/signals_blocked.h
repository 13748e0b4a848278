#pragma once

#include <pthread.h>
#include <signal.h>

#include <initializer_list>

namespace urma {

// While it lives, this thread takes no signals, and threads that it starts never will: they are the
// application's, which may block them later and wait for them elsewhere.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    // What a thread brings upon itself: blocked, it would end the process without being handled.
    for (const int own : {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP}) sigdelset(&all, own);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  SignalsBlocked(const SignalsBlocked&) = delete;
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

}  // namespace urma
