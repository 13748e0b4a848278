// SPDX-License-Identifier: Apache-2.0
#include "jetty/examine.h"

#include <bit>

#include "base/accelerator_memory.h"
#include "base/address_space.h"
#include "jetty/atomics.h"

namespace urma::jetty {
namespace {

// Returns whether the value that an atomic fetches may be stored where the work says.
bool may_be_fetched(const Work& work) {
  const Buffer& into = work.buffer;
  return into.data == nullptr ||
         (work.atomic != Atomic::store && could_be_memory(into.data, into.bytes) &&
          !AcceleratorMemory::has(into.data));
}

}  // namespace

Status examine_notification(const Work& work) {
  if (work.operation != Operation::write || (work.with_immediate && work.with_notify) ||
      !(work.target.peer == work.segment.peer)) {
    return Status::bad_work;
  }
  if (!work.with_notify) return Status::ok;
  // Work::notify sets only these two values.
  const bool known =
      work.notify_verdict == Status::ok || work.notify_verdict == Status::remote_access;
  return known ? work.notify_verdict : Status::bad_work;
}

Status examine_atomic(const Work& work, uint64_t bytes) {
  const bool more = work.with_immediate || work.with_notify || work.solicits || work.copied ||
                    !work.buffers.empty();
  if (more || !may_be_fetched(work) || !work.segment.peer || !is_atomic(work.atomic, work.update))
    return Status::bad_work;
  if (!std::has_single_bit(bytes) || bytes > most_atomic_bytes_of_ub) return Status::bad_work;
  if ((work.segment.address + work.offset) % bytes != 0) return Status::bad_work;
  if (!is_valid(work.segment.atomics)) return Status::bad_work;
  if (bytes > most_atomic_bytes || work.segment.atomics == AtomicDomain::device) {
    return Status::unsupported;
  }
  const bool allowed = inside(work, bytes) && has(work.segment.rights, Rights::atomic);
  return allowed ? Status::ok : Status::remote_access;
}

}  // namespace urma::jetty
