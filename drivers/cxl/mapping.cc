#include "drivers/cxl/mapping.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/above_standard.h"
#include "base/file_system.h"
#include "drivers/cxl/acted_caches.h"
#include "drivers/cxl/window_lock.h"

namespace urma::drivers::cxl {
namespace {

std::string size_text(uint64_t bytes) {
  return bytes % (1 << 20) == 0 ? std::to_string(bytes >> 20) + "M" : std::to_string(bytes);
}

}  // namespace

// ---- errors

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
                 "put it on a file system that has locks (/dev/shm has)");
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

// ---- the file

// An existing file is opened without O_CREAT, which the system may refuse in a directory for all
// users, such as /dev/shm, if the file is another user's (fs.protected_regular).
Result<int> Mapping::open_path() const {
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
    return errors_.because(
        Status::permission_denied, std::string("cannot be opened: ") + std::strerror(why),
        "it belongs to another user: choose another path, cxl:/dev/shm/NAME, or have "
        "its owner allow it (chmod a+rw)");
  }
  if (is_shortage(why)) return errors_.cannot_have("cannot be made", page_bytes, why);
  return errors_.because(Status::io_error, std::string("cannot be opened: ") + std::strerror(why),
                         "name a file in /dev/shm or hugetlbfs, a /dev/dax device, or a PCI BAR's "
                         "resource file");
}

Mapping::Mapping(std::string path) : errors_{std::move(path)}, owner_(getpid()) {}

Result<void> Mapping::open() {
  const Result<int> opened = open_path();
  if (!opened) return opened.error();
  descriptor_ = *opened;  // from here on the destructor closes it, whatever fails
  not_inherited_ = NotInherited(descriptor_);
  pages_ = pages_of(descriptor_);
  struct stat about {};
  is_file_ = fstat(descriptor_, &about) == 0 && S_ISREG(about.st_mode);
  return {};
}

Mapping::~Mapping() {
  guard_ = Guard();
  if (mapped_ != nullptr) munmap(mapped_, bytes_);
  not_inherited_ = NotInherited();
  if (descriptor_ >= 0) close(descriptor_);
}

bool Mapping::here() const { return owner_ == getpid(); }

void Mapping::abandon() {
  owner_ = -1;
  not_inherited_ = NotInherited();
  close(std::exchange(descriptor_, -1));
}

bool Mapping::same_file(int descriptor) const {
  struct stat ours {};
  struct stat theirs {};
  return fstat(descriptor_, &ours) == 0 && fstat(descriptor, &theirs) == 0 &&
         ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino;
}

int Mapping::take_memory(uint64_t at, uint64_t bytes) const {
  if (!is_file_) return 0;
  int result = -1;
  do {
    result = fallocate(descriptor_, 0, static_cast<off_t>(at), static_cast<off_t>(bytes));
  } while (result != 0 && errno == EINTR);
  return result == 0 || errno == EOPNOTSUPP || errno == ENOSYS || errno == ENODEV ? 0 : errno;
}

bool Mapping::give_back_memory(uint64_t at, uint64_t bytes) const {
  return is_file_ && fallocate(descriptor_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                               static_cast<off_t>(at), static_cast<off_t>(bytes)) == 0;
}

// ---- the mapping

Error Mapping::cannot_map(int error) const {
  const std::string failed =
      "cannot be mapped (" + size_text(bytes_) + "): " + std::strerror(error);
  if (error == ENOMEM) {
    return errors_.because(
        Status::no_resources, failed,
        "more address space (ulimit -v) or a smaller window; in hugetlbfs, free huge pages");
  }
  return errors_.because(
      Status::io_error, failed,
      "name a file in /dev/shm or hugetlbfs (with free huge pages), a /dev/dax device "
      "or a prefetchable BAR; a size that is what the device has");
}

// Maps by another opening than the one that has the locks: a mapping keeps its own alive, also in a
// child of fork that outlives this process.
Result<void> Mapping::map(uint64_t bytes, bool coherent, uint64_t double_seed) {
  bytes_ = bytes;
  parts_ = Parts::of(bytes);
  const Result<int> again = open_path();
  if (!again) return again.error();
  const bool same = same_file(*again);
  void* const at =
      same ? mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, *again, 0)
           : MAP_FAILED;
  const int why = errno;
  close(*again);
  if (!same) {
    return errors_.because(Status::io_error, "was replaced while it was opened", "try again");
  }
  if (at == MAP_FAILED) return cannot_map(why);
  base_ = mapped_ = static_cast<std::byte*>(at);
  if (pages_.asked) madvise(mapped_, bytes_, MADV_HUGEPAGE);
  if (is_file_) guard_ = Guard(mapped_, bytes_);
  return coherent ? Result<void>() : put_caches_between(double_seed);
}

Result<void> Mapping::put_caches_between(uint64_t double_seed) {
  if (double_seed != 0) {
    auto acted = ActedCaches::make(mapped_, bytes_, double_seed);
    if (acted == nullptr) {
      return errors_.because(Status::no_resources,
                             std::string("cannot have a copy of its own: ") + std::strerror(errno),
                             "a smaller window: cxl:PATH?size=16M");
    }
    base_ = acted->copy();
    caches_ = std::move(acted);
    return {};
  }
  caches_ = processor_caches();
  if (caches_ != nullptr) return {};
  return errors_.because(
      Status::unsupported,
      "is not coherent, and this library cannot write back the caches of this processor",
      "x86-64 or aarch64, or a window that is coherent");
}

bool Mapping::map_again(std::byte* at, uint64_t bytes) {
  const Result<int> again = open_path();
  if (!again) return false;
  void* const mapped = same_file(*again)
                           ? mmap(at, bytes, PROT_READ | PROT_WRITE,
                                  MAP_SHARED | MAP_NORESERVE | MAP_FIXED, *again, at - base_)
                           : MAP_FAILED;
  close(*again);
  return mapped != MAP_FAILED;
}

}  // namespace urma::drivers::cxl
