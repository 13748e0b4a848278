// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "umdk/context.h"
#include "umdk/spin_lock.h"

namespace urma::umdk {

struct Jfc;

// An event channel. An event comes from one of the library's queues, or from a JFC that had a
// completion when it was armed. Any thread calls it.
struct Jfce : urma_jfce_t {
  static constexpr uint64_t kind = 0x6a66'6365;

  // Throws std::bad_alloc.
  Jfce(Context& context, urma::Jfce made);

  void attach(Jfc& jfc);
  void detach(Jfc& jfc);
  // Lets the queue raise events of the JFC. Errors: those of urma::Jfce::attach.
  Result<void> add(urma::Jfc& queue, Jfc& jfc);
  // Raises one event of the JFC now.
  void raise(Jfc& jfc);
  // Takes events, and waits for the first one for up to `limit_ms`, or without limit if that is
  // negative. Returns their number, or -1 with errno set.
  int wait(urma_jfc_t** out, uint32_t most, int limit_ms);

  uint64_t handle = 0;

 private:
  uint32_t take(urma_jfc_t** out, uint32_t most);

  SpinLock lock_;
  urma::Jfce events_;
  OwnDescriptor raised_;          // readable while due_ is not empty
  OwnDescriptor both_;            // readable while there may be an event
  std::vector<Jfc*> attached_{};  // those that exist
  std::vector<Jfc*> due_{};       // those that were raised; has room for all
};

}  // namespace urma::umdk
