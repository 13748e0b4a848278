// SPDX-License-Identifier: Apache-2.0
#include "engine/held_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "base/above_standard.h"
#include "base/file_system.h"

namespace urma::engine {
namespace {

constexpr uint64_t least_file_bytes = 4096;

}  // namespace

// Completes construction before NotInherited can throw, so that the destructor closes the file.
OwnedDescriptor::OwnedDescriptor(int descriptor) : OwnedDescriptor() {
  descriptor_ = descriptor;
  not_inherited_ = NotInherited(descriptor);
}

OwnedDescriptor::OwnedDescriptor(OwnedDescriptor&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      not_inherited_(std::move(other.not_inherited_)) {}

OwnedDescriptor& OwnedDescriptor::operator=(OwnedDescriptor&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(not_inherited_, other.not_inherited_);
  return *this;
}

OwnedDescriptor::~OwnedDescriptor() {
  if (descriptor_ < 0) return;
  not_inherited_ = NotInherited();
  close(descriptor_);
}

HeldFile& HeldFile::operator=(HeldFile&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(path_, other.path_);
  return *this;
}

HeldFile::~HeldFile() {
  // While this process holds the lock, no other process replaces the file, so the path still names
  // this file.
  if (file_.get() >= 0) unlink(path_.c_str());
}

OwnedDescriptor open_to_look(const std::string& path) {
  return OwnedDescriptor(
      above_standard(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)));
}

bool held(const OwnedDescriptor& file) { return flock(file.get(), LOCK_SH | LOCK_NB) != 0; }

Error OwnDirectory::failure(const std::string& doing, int why) const {
  const Status status =
      why == EACCES || why == EPERM ? Status::permission_denied : Status::io_error;
  if (is_shortage(why)) {
    const Shortage shortage = explain_shortage(file_system_of(path), least_file_bytes, why);
    return {Status::no_resources,
            what + ": " + doing + ": " + shortage.why + ". Fix: " + shortage.cure};
  }
  if (why == EFBIG) {
    return {status, what + ": " + doing +
                        ": this process may not write files of that size. Fix: raise its limit "
                        "(ulimit -f unlimited), and start this process again"};
  }
  return error(status, what + ": " + doing + ": " + std::strerror(why));
}

Result<void> OwnDirectory::trust() const {
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0) {
    if (errno == ENOENT) return {};
    return failure("looking at " + path, errno);
  }
  if (!S_ISDIR(info.st_mode) || info.st_uid != geteuid() || (info.st_mode & 077) != 0) {
    return Error{
        Status::permission_denied,
        what + ": " + path + " is not a directory of this user with mode 0700. Fix: " + cure};
  }
  return {};
}

Result<void> OwnDirectory::make() const {
  if (mkdir(path.c_str(), 0700) == 0 || errno == EEXIST) return trust();
  return failure("making " + path, errno);
}

std::vector<std::string> entries_of(const std::string& directory) {
  const OwnedDescriptor opened(
      above_standard(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)));
  return entries_in(opened, SIZE_MAX);
}

std::vector<std::string> entries_in(const OwnedDescriptor& directory, size_t most) {
  std::vector<std::string> out;
  // closedir() closes the descriptor that it reads, so that one is another.
  const int descriptor =
      above_standard(::openat(directory.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (descriptor < 0) return out;
  const std::unique_ptr<DIR, int (*)(DIR*)> opened(fdopendir(descriptor), closedir);
  if (opened == nullptr) {
    close(descriptor);
    return out;
  }
  while (out.size() < most) {
    const dirent* const entry = readdir(opened.get());
    if (entry == nullptr) break;
    if (entry->d_name[0] != '.') out.emplace_back(entry->d_name);
  }
  return out;
}

}  // namespace urma::engine
