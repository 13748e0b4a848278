#pragma once

#include <array>
#include <cstddef>

namespace urma {

// Copies to and from memory that may not be there: what was unmapped, is read-only, or lies behind
// the end of a file that was cut off is a `false` and no fault. The kernel does it, by way of a
// pipe: that needs neither a signal handler nor a privilege, and filters that forbid
// process_vm_writev, as some of containers do, let it pass; for a packet it is no slower. One
// thread at a time.
class GuardedCopy {
 public:
  GuardedCopy() = default;
  GuardedCopy(const GuardedCopy&) = delete;
  ~GuardedCopy();

  // Before the first copy; again does nothing. False: there is no descriptor left.
  bool open();
  // False: not all of it could be. What comes before may have been copied.
  bool copy(std::byte* to, const std::byte* from, size_t bytes) const;

 private:
  bool take(std::byte* to, size_t bytes) const;
  void drain() const;

  std::array<int, 2> ends_{-1, -1};  // to read from, to write to
};

}  // namespace urma
