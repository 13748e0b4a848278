// SPDX-License-Identifier: Apache-2.0
#include "base/guarded_copy.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "base/above_standard.h"
#include "base/accelerator_memory.h"

namespace urma {
namespace {

template <class Call>
ssize_t uninterrupted(Call&& call) {
  ssize_t done = 0;
  do done = call();
  while (done < 0 && errno == EINTR);
  return done;
}

}  // namespace

GuardedCopy::~GuardedCopy() {
  for (const int end : ends_) {
    if (end >= 0) close(end);
  }
}

bool GuardedCopy::open(std::span<const std::byte> memory) {
  const int accelerator = AcceleratorMemory::number_of(memory.data());
  return accelerator >= 0 ? accelerators_.open(accelerator) : open_pipe();
}

// Neither end blocks: writing to a full pipe copies a part, reading from an empty one returns an
// error.
bool GuardedCopy::open_pipe() {
  if (ends_[0] >= 0) return true;
  std::array<int, 2> ends{-1, -1};
  if (pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) return false;
  for (int& end : ends) end = above_standard(end);
  if (ends[0] >= 0 && ends[1] >= 0) {
    ends_ = ends;
    return true;
  }
  for (const int end : ends) {
    if (end >= 0) close(end);
  }
  return false;
}

bool GuardedCopy::copy(std::byte* to, const std::byte* from, size_t bytes, uint64_t owner) {
  if (AcceleratorMemory::has(to)) return accelerators_.begin(to, from, bytes, owner);
  if (AcceleratorMemory::has(from)) return accelerators_.copy(to, from, bytes);
  return copy_piped(to, from, bytes);
}

// Copies as much at a time as the pipe holds, which the system may have limited to one page.
bool GuardedCopy::copy_piped(std::byte* to, const std::byte* from, size_t bytes) const {
  while (bytes > 0) {
    const ssize_t given = uninterrupted([&] { return write(ends_[1], from, bytes); });
    const auto count = static_cast<size_t>(given);
    if (given <= 0 || !take(to, count)) {
      drain();
      return false;
    }
    to += count;
    from += count;
    bytes -= count;
  }
  return true;
}

bool GuardedCopy::take(std::byte* to, size_t bytes) const {
  while (bytes > 0) {
    const ssize_t taken = uninterrupted([&] { return read(ends_[0], to, bytes); });
    if (taken <= 0) return false;
    to += taken;
    bytes -= static_cast<size_t>(taken);
  }
  return true;
}

// Removes what a failed copy has left in the pipe.
void GuardedCopy::drain() const {
  std::array<std::byte, 4096> left;
  while (uninterrupted([&] { return read(ends_[0], left.data(), left.size()); }) > 0) {
  }
}

}  // namespace urma
