// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "memseg/segment_table.h"
#include "urma/core/work.h"

namespace urma::jetty {

// What is wrong with a work, before anything of it is sent? The target checks all of it again.

// Returns whether these bytes lie in the work's segment.
inline bool inside(const Work& work, uint64_t bytes) {
  return work.offset <= UINT64_MAX - work.segment.address &&
         memseg::within(work.segment.address, work.segment.bytes,
                        work.segment.address + work.offset, bytes);
}

// Checks that a work that notifies is a write, notifies in one way only, and notifies the peer that
// it writes to.
Status examine_notification(const Work& work);
// The same as `examine`, for atomics.
Status examine_atomic(const Work& work, uint64_t bytes);

// Returns `ok`, or the status with which the work completes. `bytes`: of the memory that it names.
inline Status examine(const Work& work, uint64_t bytes) {
  if (work.buffers.size() > max_buffers) return Status::bad_work;
  if (work.operation == Operation::send) {
    return !work.with_notify && work.target && bytes <= max_send_bytes ? Status::ok
                                                                       : Status::bad_work;
  }
  if (work.operation == Operation::atomic) return examine_atomic(work, bytes);
  if (work.operation > Operation::read || !work.segment.peer) return Status::bad_work;
  if (bytes > max_write_bytes) return Status::bad_work;
  if (work.with_immediate || work.with_notify) {
    const Status notifying = examine_notification(work);
    if (notifying != Status::ok) return notifying;
  }
  // Checked here so that a refused work changes nothing at the target: of several packets, the
  // first ones might be placed before another one is refused.
  const Rights wanted = work.operation == Operation::read ? Rights::read : Rights::write;
  const bool allowed = inside(work, bytes) && (bytes == 0 || has(work.segment.rights, wanted));
  return allowed ? Status::ok : Status::remote_access;
}

}  // namespace urma::jetty
