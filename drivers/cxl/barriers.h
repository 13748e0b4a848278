// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

#include "base/use_fence.h"
#include "drivers/cxl/shared_words.h"

namespace urma::drivers::cxl {

// Orders two things that happen in different threads, or processes, of one kernel: a device uses a
// segment (it stores that it does, and then reads whether the segment is open), and another one
// closes it (it closes the segment, and then reads which devices use it). One of the two must see
// the other. Uses are frequent, so they cost nothing here: the device that closes lets the kernel
// interrupt all processors that run users (membarrier). Where a device cannot ask for that, because
// an old kernel or a sandbox does not allow it, the window says so, and each use takes a fence.
//
// `before_use` is called by any thread, the other functions by one thread at a time.
class Barriers {
 public:
  // Lets others interrupt this process, if the kernel can.
  explicit Barriers(const SharedWords& words);

  // Returns whether this device can interrupt users; if not, its slot has to say so.
  bool available() const { return available_; }

  // Call it between the store that names the segment and the load of its epoch.
  void before_use() const { fence_before_use(words_.changes().fences); }
  // Call it between the store that closes segments and the loads that show which devices use them.
  // Takes microseconds. Returns false if the kernel refuses: then users may be invisible.
  [[nodiscard]] bool after_closing() const;

 private:
  const SharedWords& words_;
  const bool available_;
};

}  // namespace urma::drivers::cxl
