// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace urma::test {

// Returns whether `function` returns. It runs in a child process, because otherwise it ends its
// process.
template <class Function>
bool survives(Function&& function) {
  const pid_t child = fork();
  if (child == 0) {
    // The child prints an error before it dies, which is expected here and would look like a
    // failure.
    close(STDERR_FILENO);
    // Catch2's handlers would report the death as a failure of this test.
    for (const int number : {SIGABRT, SIGFPE, SIGSEGV, SIGILL}) signal(number, SIG_DFL);
    function();
    _exit(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace urma::test
