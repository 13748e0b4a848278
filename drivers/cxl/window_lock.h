#pragma once

#include "drivers/cxl/layout.h"
#include "urma/core/time.h"

namespace urma::drivers::cxl {

// Locks on single bytes of a window's file, far behind what is mapped. They are the kernel's (OFD):
// however their owner ends, they are released, and those of another kernel are not seen. In all
// layouts they lie where they lie here.

// Returns false, and errno, if another descriptor holds it.
bool lock_place(int descriptor, uint32_t place);
void unlock_place(int descriptor, uint32_t place);
// Returns whether another descriptor holds the lock.
bool place_is_locked(int descriptor, uint32_t place);
// Returns whether any slot is locked, in any layout.
bool any_place_is_locked(int descriptor);

// Holds the lock of the window, which orders changes of its records, until it is destroyed.
class WindowLock {
 public:
  // A process holds the lock for a moment only, unless it is stopped there.
  static constexpr Duration patience = std::chrono::seconds(1);

  explicit WindowLock(int descriptor);
  // Waits for it.
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
