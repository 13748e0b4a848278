// SPDX-License-Identifier: Apache-2.0
#include "drivers/cxl/backing_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/above_standard.h"
#include "base/file_system.h"
#include "drivers/cxl/layout.h"

namespace urma::drivers::cxl {

BackingFile::BackingFile(std::string path) : errors_{std::move(path)}, owner_(getpid()) {}

BackingFile::~BackingFile() {
  not_inherited_ = NotInherited();
  if (descriptor_ >= 0) close(descriptor_);
}

// An existing file is opened without O_CREAT, which the system may refuse in a directory for all
// users, such as /dev/shm, if the file is another user's (fs.protected_regular).
Result<int> BackingFile::open_path() const {
  constexpr int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
  int descriptor = -1;
  for (int tries = 0; tries < 3 && descriptor < 0; ++tries) {
    descriptor = above_standard(::open(path().c_str(), flags));
    if (descriptor < 0 && errno != ENOENT) break;
    if (descriptor < 0) {
      descriptor = above_standard(::open(path().c_str(), flags | O_CREAT | O_EXCL, 0600));
    }
    if (descriptor < 0 && errno != EEXIST) break;
  }
  if (descriptor >= 0) return descriptor;
  const int why = errno;
  if (why == EACCES || why == EPERM) {
    return errors_.failed(Status::permission_denied, "cannot be opened: ", std::strerror(why))
        .fix(
            "choose another path, cxl:/dev/shm/NAME, or have the file's owner, another user, "
            "allow it (chmod a+rw)");
  }
  if (is_shortage(why)) return errors_.cannot_have("cannot be made", page_bytes, why);
  if (why == EROFS) return errors_.read_only();
  return errors_.failed(Status::io_error, "cannot be opened: ", std::strerror(why))
      .fix("name a file in /dev/shm or hugetlbfs, a /dev/dax device, or a PCI BAR's resource file");
}

Result<void> BackingFile::open() {
  const Result<int> opened = open_path();
  if (!opened) return opened.error();
  descriptor_ = *opened;  // from here on the destructor closes it, whatever fails
  not_inherited_ = NotInherited(descriptor_);
  pages_ = pages_of(descriptor_);
  struct stat about {};
  is_file_ = fstat(descriptor_, &about) == 0 && S_ISREG(about.st_mode);
  return {};
}

bool BackingFile::same_file(int descriptor) const {
  struct stat ours {};
  struct stat theirs {};
  return fstat(descriptor_, &ours) == 0 && fstat(descriptor, &theirs) == 0 &&
         ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino;
}

Result<int> BackingFile::open_again() const {
  const Result<int> again = open_path();
  if (!again || same_file(*again)) return again;
  close(*again);
  return errors_.failed(Status::io_error, "was replaced while it was opened").fix("try again");
}

bool BackingFile::here() const { return owner_ == getpid(); }

void BackingFile::abandon() {
  owner_ = -1;
  not_inherited_ = NotInherited();
  close(std::exchange(descriptor_, -1));
}

int BackingFile::take_memory(uint64_t at, uint64_t bytes) const {
  if (!is_file_) return 0;
  int result = -1;
  do {
    result = fallocate(descriptor_, 0, static_cast<off_t>(at), static_cast<off_t>(bytes));
  } while (result != 0 && errno == EINTR);
  return result == 0 || errno == EOPNOTSUPP || errno == ENOSYS || errno == ENODEV ? 0 : errno;
}

bool BackingFile::give_back_memory(uint64_t at, uint64_t bytes) const {
  return is_file_ && fallocate(descriptor_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                               static_cast<off_t>(at), static_cast<off_t>(bytes)) == 0;
}

}  // namespace urma::drivers::cxl
