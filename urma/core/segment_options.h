// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "urma/core/endpoint.h"
#include "urma/core/rights.h"

namespace urma {

inline constexpr uint32_t max_lanes = 8;  // the most lanes of a device (Jetty::lane)

class Segment;

// Options of Device::allocate and Device::register_memory.
struct SegmentOptions {
  // The accesses that peers may make.
  Rights rights = Rights::read | Rights::write;
  // Where atomics on the segment are executed (urma/core/atomic_works.h). `device` with
  // Rights::atomic is refused as unsupported.
  AtomicDomain atomics = AtomicDomain::processor;
  // How requests prove their right to access. `signature` and `encryption` are refused as
  // unsupported.
  TokenPolicy policy = TokenPolicy::plain_text;
  // Another segment of the device, whose TokenID, tokens and policy this one shares, and with which
  // it is revoked (Segment::revoke). The two must not overlap. If null, the segment has a TokenID
  // of its own.
  const Segment* with = nullptr;
  // The token of the segment. If empty, the device draws one at random. A token that was chosen is
  // not replaced (Segment::rotate). Not together with `with`.
  std::optional<TokenValue> token{};
  // Whether the memory may disappear while it is registered: be unmapped, made read-only, or lie in
  // a file that is truncated. A peer's access then ends as `remote_access`, instead of ending this
  // process by SIGSEGV or SIGBUS; bytes written before the missing page stay written. The guard
  // costs 1 us for each packet, and two descriptors and 64 MiB of address space once for the
  // device. Such a segment takes no notifications (Work::notify) and no atomics. Only for
  // register_memory. The owner's own works that use this memory as a buffer are not guarded.
  bool guarded = false;
};

// Unregistered memory of a device's medium that cannot be allocated again yet: a process that is
// not running now may write to it once it runs again, or a peer was handed the memory and its pages
// could not be replaced.
struct Quarantined {
  uint64_t address = 0;  // as RemoteSegment::address
  uint64_t bytes = 0;    // its length
  Endpoint held_by;      // the address of the device that may write to it
};

}  // namespace urma
