// SPDX-License-Identifier: Apache-2.0
#include "umdk/own_process.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "base/own_threads.h"

namespace urma::umdk {
namespace {

size_t read_whole(int descriptor, char* to, size_t room) {
  ssize_t got = 0;
  do got = ::read(descriptor, to, room);
  while (got < 0 && errno == EINTR);
  return got > 0 ? static_cast<size_t>(got) : 0;
}

// Reads a line such as "7f00-7f10 rw-p 00001000 00:1b 1234   /dev/shm/name".
std::optional<Mapped> parsed(const char* line) {
  Mapped one;
  char rights[5] = {};
  unsigned long begin = 0, end = 0, offset = 0, number = 0;
  unsigned major = 0, minor = 0;
  int name_at = 0;
  const int fields = std::sscanf(line, "%lx-%lx %4s %lx %x:%x %lu %n", &begin, &end, rights,
                                 &offset, &major, &minor, &number, &name_at);
  if (fields < 7) return std::nullopt;
  const std::string_view name = line + name_at;
  one.begin = begin;
  one.end = end;
  one.offset = offset;
  one.file_system = uint64_t{major} << 32 | minor;
  one.file_number = number;
  one.is_writable = rights[1] == 'w';
  one.is_shared = rights[3] == 's';
  // A stack grows, which other memory in its place would not.
  const bool is_usual = name.empty() || name == "[heap]" || name.starts_with("[anon");
  one.is_plain = std::string_view(rights) == "rw-p" && number == 0 && is_usual;
  return one;
}

}  // namespace

MappedRanges::MappedRanges() : descriptor_(::open("/proc/self/maps", O_RDONLY | O_CLOEXEC)) {}

MappedRanges::~MappedRanges() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

// Reads on, behind the line of which the beginning was read.
bool MappedRanges::fill() {
  std::memmove(text_, text_ + used_, filled_ - used_);
  filled_ -= used_;
  used_ = 0;
  const size_t got = read_whole(descriptor_, text_ + filled_, sizeof text_ - filled_);
  filled_ += got;
  return got > 0;
}

std::optional<Mapped> MappedRanges::next() {
  if (descriptor_ < 0) return std::nullopt;
  for (;;) {
    char* const line = text_ + used_;
    if (void* const end = std::memchr(line, '\n', filled_ - used_); end != nullptr) {
      *static_cast<char*>(end) = 0;
      used_ = static_cast<size_t>(static_cast<char*>(end) - text_) + 1;
      return parsed(line);
    }
    if (!fill()) return std::nullopt;
  }
}

std::optional<Mapped> mapped_at(uintptr_t address) {
  MappedRanges ranges;
  while (const auto one = ranges.next()) {
    if (one->begin <= address && address < one->end) return one;
  }
  return std::nullopt;
}

namespace {

// Returns whether all ranges of the memory have this property.
bool all_are(bool Mapped::*property, std::span<std::byte> memory) {
  auto at = reinterpret_cast<uintptr_t>(memory.data());
  const uintptr_t end = at + memory.size();
  MappedRanges ranges;
  while (const auto one = ranges.next()) {
    if (one->end <= at) continue;
    if (one->begin > at || !((*one).*property)) return false;
    at = one->end;
    if (at >= end) return true;
  }
  return false;
}

}  // namespace

bool is_plain(std::span<std::byte> memory) { return all_are(&Mapped::is_plain, memory); }

bool is_writable(std::span<std::byte> memory) { return all_are(&Mapped::is_writable, memory); }

bool has_other_threads() {
  DIR* const threads = ::opendir("/proc/self/task");
  if (threads == nullptr) return true;
  const auto self = static_cast<long>(::syscall(SYS_gettid));
  bool others = false;
  while (const dirent* const one = ::readdir(threads)) {
    if (one->d_name[0] == '.') continue;
    const long thread = std::atol(one->d_name);
    others = others || (thread != self && !is_own_thread(static_cast<pid_t>(thread)));
  }
  ::closedir(threads);
  return others;
}

}  // namespace urma::umdk
