// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <string>

namespace urma::test {

// Writes `text` to the file. Returns false if that fails.
inline bool write_text(const char* path, const std::string& text) {
  const int file = ::open(path, O_WRONLY | O_CLOEXEC);
  const bool written =
      file >= 0 && ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (file >= 0) ::close(file);
  return written;
}

// Gives this process its own mounts: as root, or as any user if user namespaces are allowed.
// Returns false if that is refused. For a child of a test, before it starts a thread.
inline bool own_mounts() {
  const uid_t user = geteuid();
  const gid_t group = getegid();
  if (unshare(CLONE_NEWNS) != 0) {
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
    // Without a mapping of users, no file can be created.
    const bool mapped = write_text("/proc/self/setgroups", "deny") &&
                        write_text("/proc/self/uid_map", "0 " + std::to_string(user) + " 1") &&
                        write_text("/proc/self/gid_map", "0 " + std::to_string(group) + " 1");
    if (!mapped) return false;
  }
  return mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
}

// Mounts a file system at the directory, for this process only. Returns false if that is refused.
inline bool mount_here(const std::string& directory, const char* kind, const char* options) {
  return own_mounts() && mount(kind, directory.c_str(), kind, 0, options) == 0;
}

}  // namespace urma::test
