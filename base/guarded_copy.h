// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/accelerator_copies.h"

namespace urma {

// Copies to and from memory that this process may not be able to access. If memory of the process
// was unmapped, is read-only, or lies behind the end of a truncated file, `copy` returns false
// instead of faulting. The kernel does the copying, through a pipe. That needs neither a signal
// handler nor a privilege, works in containers that forbid process_vm_writev, and is as fast for a
// packet. Memory of accelerators is copied by their driver. Used by one thread at a time.
class GuardedCopy {
 public:
  GuardedCopy() = default;
  GuardedCopy(const GuardedCopy&) = delete;
  ~GuardedCopy();

  // To be called before this memory is copied; may be repeated. Returns false if the process has no
  // file descriptor left, or the accelerator's driver refuses.
  bool open(std::span<const std::byte> memory);
  // Returns false if a part of either range is not accessible. Bytes before that part may have been
  // copied. At most one of the ranges may be memory of an accelerator. If `to` is, at most 64 KiB
  // are copied at a time, and the copy is only begun, for an owner of the caller's choice.
  bool copy(std::byte* to, const std::byte* from, size_t bytes, uint64_t owner = 0);
  // As in AcceleratorCopies.
  bool finish(uint64_t owner) { return accelerators_.finish(owner); }
  void settle() { accelerators_.settle(); }
  // As AcceleratorCopies::pin and unpin.
  void pin(std::span<std::byte> memory) { accelerators_.pin(memory); }
  void unpin() { accelerators_.unpin(); }

 private:
  bool open_pipe();
  bool copy_piped(std::byte* to, const std::byte* from, size_t bytes) const;
  bool take(std::byte* to, size_t bytes) const;
  void drain() const;

  std::array<int, 2> ends_{-1, -1};  // read end, write end
  AcceleratorCopies accelerators_;
};

}  // namespace urma
