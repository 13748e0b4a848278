// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_perf/shm_window.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "apps/common/failure.h"

namespace urma::apps::perf {
namespace {

constexpr std::string_view folder = "/dev/shm/";
constexpr std::string_view prefix = "urma_perf.";
constexpr size_t digits = 16;

std::string path_of(std::string_view name) { return fmt::format("{}{}", folder, name); }

// Checks the name, which a client has sent: only files of --limit are opened or removed.
bool is_ours(std::string_view name) {
  return name.size() == prefix.size() + digits && name.starts_with(prefix) &&
         name.find_first_not_of("0123456789abcdef", prefix.size()) == name.npos;
}

Failure failure(std::string_view doing, std::string_view cure) {
  return {Exit::error, fmt::format("--limit: {} in /dev/shm failed: {}. Fix: {}", doing,
                                   std::strerror(errno), cure)};
}

std::string random_name() {
  uint64_t number = 0;
  if (getrandom(&number, sizeof number, 0) != sizeof number) {
    throw failure("naming a file", "leave --limit out");
  }
  return fmt::format("{}{:016x}", prefix, number);
}

// Removes files whose creators have ended, which are the files that are not locked. Files of other
// users are not opened.
void remove_left_behind() {
  DIR* all = opendir(std::string(folder).c_str());
  if (all == nullptr) return;
  while (const dirent* one = readdir(all)) {
    if (!is_ours(one->d_name)) continue;
    const int file = ::open(path_of(one->d_name).c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0) continue;
    if (flock(file, LOCK_EX | LOCK_NB) == 0) unlink(path_of(one->d_name).c_str());
    close(file);
  }
  closedir(all);
}

struct stat about(int descriptor) {
  struct stat found {};
  fstat(descriptor, &found);
  return found;
}

}  // namespace

ShmWindow::ShmWindow(std::string name, int descriptor)
    : name_(std::move(name)), descriptor_(descriptor) {}

ShmWindow::ShmWindow(ShmWindow&& other) noexcept
    : name_(std::exchange(other.name_, {})),
      descriptor_(std::exchange(other.descriptor_, -1)),
      bytes_(std::exchange(other.bytes_, {})) {}

ShmWindow::~ShmWindow() {
  forget_name();
  if (!bytes_.empty()) munmap(bytes_.data(), bytes_.size());
}

ShmWindow ShmWindow::make(size_t bytes) {
  remove_left_behind();
  constexpr std::string_view cure = "let this process write there, or leave --limit out";
  // Another process may remove the new file before it is locked. Then it has no name, and the next
  // attempt follows.
  for (;;) {
    const std::string name = random_name();
    const int file =
        ::open(path_of(name).c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0) throw failure("making a file", cure);
    ShmWindow window(name, file);
    if (flock(file, LOCK_EX) != 0) throw failure("locking a file", cure);
    if (about(file).st_nlink == 0) continue;
    // If the file system had too little space, a later store would raise a signal, so space is
    // allocated here.
    if (const int why = posix_fallocate(file, 0, static_cast<off_t>(bytes)); why != 0) {
      errno = why;
      throw failure(fmt::format("making a file of {} MiB", bytes >> 20),
                    "lower --size, free some space there (see: df /dev/shm), or leave --limit out");
    }
    window.map(bytes);
    return window;
  }
}

ShmWindow ShmWindow::open(const std::string& name, size_t bytes) {
  constexpr std::string_view cure =
      "run both sides as one user on one host with one /dev/shm, or leave --limit out";
  errno = EINVAL;
  if (!is_ours(name)) throw failure("opening the file that the client named", cure);
  const int file = ::open(path_of(name).c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC);
  if (file < 0) throw failure("opening the client's file", cure);
  const struct stat found = about(file);
  if (!S_ISREG(found.st_mode) || found.st_uid != geteuid() ||
      found.st_size != static_cast<off_t>(bytes)) {
    close(file);
    errno = EPERM;
    throw failure("opening the client's file", cure);
  }
  ShmWindow window(name, file);
  window.map(bytes);
  window.forget_name();
  return window;
}

void ShmWindow::map(size_t bytes) {
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
  if (at == MAP_FAILED) throw failure("mapping a file", "lower --size, or leave --limit out");
  bytes_ = {static_cast<std::byte*>(at), bytes};
  // Both sides touch all pages before either uses them, so that this does not happen during a
  // measurement.
  std::ranges::fill(bytes_, std::byte{0});
}

void ShmWindow::forget_name() {
  if (descriptor_ < 0) return;
  unlink(path_of(name_).c_str());
  name_.clear();
  close(std::exchange(descriptor_, -1));
}

}  // namespace urma::apps::perf
