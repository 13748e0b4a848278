// SPDX-License-Identifier: Apache-2.0
#include "drivers/cxl/window_errors.h"

#include <cstring>

#include "base/file_system.h"
#include "drivers/cxl/window_lock.h"

namespace urma::drivers::cxl {

Error WindowErrors::cannot_lock(const WindowLock& lock) const {
  if (lock.somebody_has_it()) {
    return failed(Status::io_error,
                  "is locked by a process that does not run (was it stopped while it joined?)")
        .fix("continue or end that process (see /proc/locks), or use another window");
  }
  return failed(Status::unsupported, "cannot be locked: ", std::strerror(lock.why_not()))
      .fix("choose a file on a file system that has locks (/dev/shm has)");
}

Error WindowErrors::cannot_have(std::string_view what, uint64_t needed_bytes, int error) const {
  if (!is_shortage(error)) {
    return failed(Status::io_error, what, ": ", std::strerror(error))
        .fix("choose a file on another file system: cxl:/another/path");
  }
  const Shortage shortage = explain_shortage(file_system_of(path), needed_bytes, error);
  return failed(Status::no_resources, what, ": ", shortage.why)
      .fix(shortage.cure, ", or choose another file system: cxl:/another/path");
}

Error WindowErrors::read_only() const {
  const std::string mounted = file_system_of(path).mount_point;
  return failed(Status::io_error,
                "cannot be opened: ", mounted.empty() ? "its file system" : mounted,
                " is mounted read-only")
      .fix("as root: mount -o remount,rw ", mounted.empty() ? "DIRECTORY" : mounted,
           "; or choose a file on a file system that may be written to: cxl:/another/path");
}

}  // namespace urma::drivers::cxl
