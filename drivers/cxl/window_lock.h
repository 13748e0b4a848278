#pragma once

#include "drivers/cxl/layout.h"
#include "urma/core/time.h"

namespace urma::drivers::cxl {

// Locks on single bytes of a window's file, far behind what is mapped. They are the kernel's (OFD):
// whatever ends their owner ends them, and nobody sees those of another kernel. In all layouts they
// lie where they lie here.

// False, and errno, when it is somebody else's.
bool lock_place(int descriptor, uint32_t place);
void unlock_place(int descriptor, uint32_t place);
// Not of this descriptor's own.
bool place_is_locked(int descriptor, uint32_t place);
// Of any layout.
bool any_place_is_locked(int descriptor);

// The window's own, for as long as this lives.
class WindowLock {
 public:
  // Whoever has it is quick, unless it was stopped there.
  static constexpr Duration patience = std::chrono::seconds(1);

  explicit WindowLock(int descriptor);
  // Waits for it.
  WindowLock(int descriptor, Duration at_most);
  WindowLock(const WindowLock&) = delete;
  WindowLock& operator=(const WindowLock&) = delete;
  ~WindowLock();

  bool held() const { return held_; }
  // False: there are no such locks here.
  bool somebody_has_it() const;
  int why_not() const { return why_not_; }

 private:
  void take();

  int descriptor_;
  bool held_ = false;
  int why_not_ = 0;  // errno
};

}  // namespace urma::drivers::cxl
