#include "drivers/cxl/window_errors.h"

#include <cstring>

#include "base/file_system.h"
#include "drivers/cxl/window_lock.h"

namespace urma::drivers::cxl {

Error WindowErrors::because(Status status, std::string_view why, std::string_view fix) const {
  return {status,
          "cxl: the window " + path + " " + std::string(why) + ". Fix: " + std::string(fix)};
}

Error WindowErrors::cannot_lock(const WindowLock& lock) const {
  if (lock.somebody_has_it()) {
    return because(Status::io_error,
                   "is locked by a process that does not run (was it stopped while it joined?)",
                   "continue or end that process (see /proc/locks), or use another window");
  }
  return because(Status::unsupported,
                 std::string("cannot be locked: ") + std::strerror(lock.why_not()),
                 "choose a file on a file system that has locks (/dev/shm has)");
}

Error WindowErrors::cannot_have(std::string_view what, uint64_t needed_bytes, int error) const {
  if (!is_shortage(error)) {
    return because(Status::io_error, std::string(what) + ": " + std::strerror(error),
                   "choose a file on another file system: cxl:/another/path");
  }
  const Shortage shortage = explain_shortage(file_system_of(path), needed_bytes, error);
  return because(Status::no_resources, std::string(what) + ": " + shortage.why,
                 shortage.cure + ", or choose another file system: cxl:/another/path");
}

Error WindowErrors::read_only() const {
  const std::string mounted = file_system_of(path).mount_point;
  const std::string there = mounted.empty() ? "DIRECTORY" : mounted;
  return because(Status::io_error,
                 "cannot be opened: " + (mounted.empty() ? "its file system" : mounted) +
                     " is mounted read-only",
                 "as root: mount -o remount,rw " + there +
                     "; or choose a file on a file system that may be written to: "
                     "cxl:/another/path");
}

}  // namespace urma::drivers::cxl
