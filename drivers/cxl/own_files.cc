// SPDX-License-Identifier: Apache-2.0
#include "drivers/cxl/own_files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/above_standard.h"
#include "base/file_limit.h"

namespace urma::drivers::cxl {
namespace {

constexpr uint64_t page = 4096;

// No write through this or any other descriptor, and no new mapping to write; ours stays
// (linux/fcntl.h since 5.1).
constexpr int seal_future_writes = 0x0010;

// No process can execute what lies in it (linux/memfd.h since 6.3), where the kernel knows that.
constexpr unsigned not_executable = 0x0008;

int make_file() {
  constexpr unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  const int descriptor = above_standard(memfd_create("urma-segment", flags | not_executable));
  if (descriptor >= 0 || errno != EINVAL) return descriptor;
  return above_standard(memfd_create("urma-segment", flags));
}

// A signal makes the system call undo its work. So memory is taken in parts, which lets a process
// with a fast timer finish.
bool take_memory(int descriptor, off_t bytes) {
  constexpr off_t part = 4 << 20;
  for (off_t at = 0; at < bytes; at += part) {
    int result = -1;
    do {
      result = fallocate(descriptor, 0, at, std::min(part, bytes - at));
    } while (result != 0 && errno == EINTR);
    if (result != 0) return false;
  }
  return true;
}

// A quarter of the descriptors is left to the application. The system always takes the lowest free
// number, so this number shows how many are in use.
bool leaves_descriptors(int descriptor) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return true;
  return static_cast<rlim_t>(descriptor) < limit.rlim_cur - limit.rlim_cur / 4;
}

}  // namespace

OwnFiles::~OwnFiles() {
  for (uint32_t segment = 0; segment < files_.size() && last_number_ != 0; ++segment) drop(segment);
}

std::byte* OwnFiles::reserve(uint32_t segment, uint64_t bytes) {
  drop(segment);
  File& file = files_[segment];
  const uint64_t pages = (bytes + page - 1) / page * page;
  void* const at =
      mmap(nullptr, pages, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return nullptr;
  file.base = static_cast<std::byte*>(at);
  file.bytes = pages;
  if (++last_number_ == 0) ++last_number_;
  file.number = last_number_;
  return file.base;
}

bool OwnFiles::make(uint32_t segment) {
  File& file = files_[segment];
  const int descriptor = make_file();
  if (descriptor < 0) return false;
  file.descriptor = static_cast<uint32_t>(descriptor) + 1;
  if (!leaves_descriptors(descriptor)) return false;
  const auto bytes = static_cast<off_t>(file.bytes);
  // To make a file larger than the process may have (ulimit -f) would end the process.
  if (!file_may_have(file.bytes)) return false;
  // The seal against shrinking ensures that no process that maps the file loses pages.
  return fchmod(descriptor, 0600) == 0 && ftruncate(descriptor, bytes) == 0 &&
         take_memory(descriptor, bytes) &&
         fcntl(descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0 &&
         mmap(file.base, file.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, descriptor,
              0) != MAP_FAILED;
}

uint32_t OwnFiles::grant(uint32_t segment, const SegmentMemory::Grant& grant) {
  File& file = files_[segment];
  file.grant = grant;
  if (!file.sealed) {
    // Devices that may use only atomics send them as packets.
    const bool writable = has(grant.rights, Rights::write);
    const int seals = F_SEAL_SEAL | (writable ? 0 : seal_future_writes);
    const auto descriptor = static_cast<int>(file.descriptor) - 1;
    file.sealed = fcntl(descriptor, F_ADD_SEALS, seals) == 0;
  }
  // Otherwise devices send packets, for which rights are checked. (A kernel that is too old cannot
  // seal the file.)
  file.open = file.sealed && has(grant.rights, Rights::read);
  return file.open ? file.number : 0;
}

void OwnFiles::close_all() {
  for (uint32_t segment = 0; segment < files_.size() && last_number_ != 0; ++segment)
    close(segment);
}

// Keeps the members that `answer` reads while the segment is closed.
void OwnFiles::release(uint32_t segment) {
  File& file = files_[segment];
  if (file.base != nullptr) {
    munmap(std::exchange(file.base, nullptr), std::exchange(file.bytes, 0));
  }
  if (file.descriptor != 0) ::close(static_cast<int>(std::exchange(file.descriptor, 0)) - 1);
}

void OwnFiles::drop(uint32_t segment) {
  release(segment);
  files_[segment] = {};
}

OwnFiles::Answer OwnFiles::answer(const FileRequest& request, int& descriptor) {
  if (request.word != FileRequest::first_word || request.segment >= files_.size() ||
      request.slot >= slot_count) {
    return Answer::nonsense;
  }
  File& file = files_[request.segment];
  if (!file.open || request.file != file.number) return Answer::late;
  const bool good = knows(request.segment, request.token);
  if (request.token_id != number(file.grant.id) || !good) return Answer::bad_token;
  descriptor = static_cast<int>(file.descriptor) - 1;
  file.users[request.slot / 64] |= uint64_t{1} << request.slot % 64;
  return Answer::granted;
}

}  // namespace urma::drivers::cxl
