// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "urma/core/endpoint.h"
#include "wire/mapped_lane.h"
#include "wire/memory_range.h"
#include "wire/next_line.h"

namespace urma {

// A medium that neither loses nor reorders packets (a window of shared memory), as a channel sees
// it. A *way* is this device's queue to one endpoint: it can be full, and it shows how far the
// other end has read. Implemented by the driver, called by the thread that runs the pass.
class Ways {
 public:
  virtual ~Ways() = default;
  // Returns the number of the way to this endpoint; it stays the same from open to close.
  virtual uint32_t way_to(const Endpoint& endpoint) const = 0;
  // Reserves room for one more frame of at most `bytes`, behind the room that was reserved since
  // the last `send`. Returns false if the way is full.
  virtual bool reserve(uint32_t way, uint32_t bytes) = 0;
  // Sends a packet of exactly `bytes` without a frame. `begin` returns the medium's own memory for
  // it, behind all packets sent before; once the caller has written the packet there, `end` sends
  // it, and one `notify` wakes the other end for any number of packets. `begin` returns null if the
  // way is full, or if room is reserved for frames, which must be sent first.
  virtual std::byte* begin(uint32_t way, uint32_t bytes) = 0;
  virtual void end() = 0;
  virtual void notify() = 0;
  // Returns where the next packet of this way is written, or null if each packet must be begun as
  // above. It stays at the same address from open to close. A caller that has sent a packet there
  // reports its bytes by `sent_line` before its next call for this way.
  virtual const NextLine* next_line(uint32_t) const { return nullptr; }
  virtual void sent_line(uint32_t /*way*/, uint32_t /*bytes*/) {}

  // Returns the address in this process of a part of the other end's segment. Returns null if the
  // medium does not map it or access is not allowed: the caller then sends a packet, whose answer
  // says whether access is allowed. Before the owner revokes held memory it waits, but not for
  // long: so the caller holds one range at a time and calls `let_go` soon. `let_go` returns false
  // if the memory was revoked meanwhile: then the copied bytes may have no effect. If the medium
  // keeps the segment mapped, it sets `prepared`, by which further parts of it can be used.
  virtual std::byte* hold(uint32_t, const MemoryRange&, PreparedSegment&) { return nullptr; }
  virtual bool let_go() { return true; }

  // Opens a lane: lets one thread of the application use this part of the other end's segment by
  // itself, until `close_lane`. A lane that is open already is opened again, and keeps its `hold`,
  // also if this is refused. `lane` is set only if the lane is opened.
  virtual Laned open_lane(uint32_t, const MemoryRange&, MappedLane&) { return Laned::unmapped; }
  // The thread does not use the lane any more.
  virtual void close_lane(const MappedLane&) {}

  // The reason why the medium has no way to an endpoint that exists: as many ways are in use as it
  // has room for, or the system has no memory for another one.
  enum class Shortage : uint8_t { none, ways, memory };
  struct State {
    uint64_t taken = 0;    // grows when the other end takes packets
    bool empty = true;     // the other end has taken all packets
    bool gone = false;     // no process is at this endpoint any more, or it cannot be reached
    bool no_room = false;  // the way does not exist, because the medium has no room for another one
  };
  // Returns the state of the way. This is slow, because it may make system calls.
  virtual State state(uint32_t way) = 0;
};

}  // namespace urma
