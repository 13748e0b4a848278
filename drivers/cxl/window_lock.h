// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "drivers/cxl/layout.h"
#include "urma/core/time.h"

namespace urma::drivers::cxl {

// Locks on single bytes of a window's file, far behind the mapped part. The kernel holds them (OFD
// locks): it releases them however their owner ends, and it does not see locks of another kernel.
// Their offsets are the same in all layouts.

// Returns false, with errno set, if another descriptor holds the lock.
bool lock_slot(int descriptor, uint32_t slot);
void unlock_slot(int descriptor, uint32_t slot);
// Returns whether another descriptor holds the lock.
bool slot_is_locked(int descriptor, uint32_t slot);
// Returns whether any slot is locked, in any layout.
bool any_slot_is_locked(int descriptor);

// Holds the lock of the window, which orders the changes that processes make to its records, until
// it is destroyed. It does not know the records. It is a local variable of the function that
// changes them.
class WindowLock {
 public:
  // A process holds the lock for microseconds, unless it is stopped meanwhile, or takes or gives
  // back all memory of the window, which takes seconds for 1 GiB on a busy machine.
  static constexpr Duration patience = std::chrono::seconds(1);

  explicit WindowLock(int descriptor);
  // Waits for the lock, at most for `at_most` after the memory of the file last grew or shrank.
  WindowLock(int descriptor, Duration at_most);
  WindowLock(const WindowLock&) = delete;
  WindowLock& operator=(const WindowLock&) = delete;
  ~WindowLock();

  bool held() const { return held_; }
  // Returns false if the file system has no such locks.
  bool somebody_has_it() const;
  int why_not() const { return why_not_; }

 private:
  void take();

  int descriptor_;
  bool held_ = false;
  int why_not_ = 0;  // errno
};

}  // namespace urma::drivers::cxl
