// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>

namespace urma {

// Copies to and from memory that may not be mapped. If it was unmapped, is read-only, or lies
// behind the end of a truncated file, `copy` returns false instead of faulting. The kernel does the
// copying, through a pipe. That needs neither a signal handler nor a privilege, works in containers
// that forbid process_vm_writev, and is as fast for a packet. Used by one thread at a time.
class GuardedCopy {
 public:
  GuardedCopy() = default;
  GuardedCopy(const GuardedCopy&) = delete;
  ~GuardedCopy();

  // To be called before the first copy; further calls do nothing. Returns false if the process has
  // no file descriptor left.
  bool open();
  // Returns false if a part of either range is not accessible. Bytes before that part may have been
  // copied.
  bool copy(std::byte* to, const std::byte* from, size_t bytes) const;

 private:
  bool take(std::byte* to, size_t bytes) const;
  void drain() const;

  std::array<int, 2> ends_{-1, -1};  // read end, write end
};

}  // namespace urma
