#pragma once

#include "urma/core/endpoint.h"
#include "urma/core/rights.h"

namespace urma {

class Segment;

struct SegmentOptions {
  Rights rights = Rights::read | Rights::write;
  // Who executes atomics on it (urma/core/atomic_works.h). With Rights::atomic, `device` is
  // refused: no device of this version does.
  AtomicDomain atomics = AtomicDomain::processor;
  // What an access must show. `signature` and `encryption` are refused: they do not exist yet.
  TokenPolicy policy = TokenPolicy::plain_text;
  // Shares the TokenID, the TokenValues and the policy of this segment, and goes with it
  // (Segment::revoke). The two must not overlap. Null: it has a TokenID of its own.
  const Segment* with = nullptr;
  // For memory that may be gone while it is registered - unmapped, made read-only, of a file that
  // is cut off: an access of a peer then ends as `remote_access`, where it would else end this
  // process (SIGSEGV, SIGBUS). What it had written before the gap stays. Costs 1 us for a packet,
  // two descriptors and address space for a device. Takes no notifications (Work::notify) and no
  // atomics. Only for register_memory; works of the owner's with this memory as buffers are not
  // guarded.
  bool guarded = false;
};

// Memory of the device's medium that is revoked, and that somebody who does not run may still write
// to, once, when it goes on; or anybody whom it was handed to, as it could not be moved away.
// Nobody is given it before.
struct Quarantined {
  uint64_t address = 0;  // as RemoteSegment::address
  uint64_t bytes = 0;
  Endpoint held_by;
};

}  // namespace urma
