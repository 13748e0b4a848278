// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace urma {

// Returns a descriptor of the same open file above 2, and closes the given one if it was 0, 1 or 2.
// A process that has closed its standard descriptors gets their numbers from the next open(), and
// whatever it later prints to stderr would go to that file: into a window's header, or to a peer.
// So each descriptor that this library keeps is passed through this function. Until the function
// returns, another thread could still write to the low number; the system offers no way to open a
// file above a number in one step.
// The result is closed on exec. A negative descriptor is returned as it is, with errno untouched;
// if the process has no other descriptor left, returns -1 with errno set.
inline int above_standard(int descriptor) {
  if (descriptor < 0 || descriptor > STDERR_FILENO) return descriptor;
  const int moved = fcntl(descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  const int why = errno;
  close(descriptor);
  errno = why;
  return moved;
}

}  // namespace urma
