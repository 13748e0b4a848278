#pragma once

#include <cstddef>
#include <cstdint>

#include "urma/core/endpoint.h"
#include "urma/core/ids.h"
#include "urma/core/rights.h"

namespace urma {

// A part of somebody's segment, and what shows that it may be used so.
struct MemoryRange {
  uint64_t address = 0;  // the owner's
  uint64_t bytes = 0;    // not zero
  TokenId id{};
  TokenValue token{};
  Rights wanted = Rights::local_only;
};

// The ways to endpoints over a medium that loses nothing and keeps the order: each can be full, and
// shows how far the other end has read. Engine thread.
class Ways {
 public:
  virtual ~Ways() = default;
  // What the way to this endpoint is called, from open to close.
  virtual uint32_t way_to(const Endpoint& endpoint) const = 0;
  // Whether there is room for one more frame of at most so many bytes, behind those that were
  // promised room since the last `send`.
  virtual bool reserve(uint32_t way, uint32_t bytes) = 0;
  // Without a frame: the medium's own memory, behind all that was sent, for a packet of exactly so
  // many bytes. It has left when it is written and `end` is called; whoever sleeps is woken by
  // `notify`, once for many. Null: there is no room, or frames that were promised room come first.
  virtual std::byte* begin(uint32_t way, uint32_t bytes) = 0;
  virtual void end() = 0;
  virtual void notify() = 0;

  // Where this part of a segment of the other end's lies, if the medium maps it here and the other
  // end lets it be used so. Until `let_go`, soon, its owner does not have it to itself: one at a
  // time. Null: not so, or not allowed; whom a packet asks says which. `let_go` is false when it
  // was taken away meanwhile: what was copied may lie where nobody looks.
  virtual std::byte* hold(uint32_t, const MemoryRange&) { return nullptr; }
  virtual bool let_go() { return true; }

  // Why the medium has no way to an endpoint that is there: as many ways are in use as it has room
  // for, or the system has no memory for another one.
  enum class Shortage : uint8_t { none, ways, memory };
  struct State {
    uint64_t taken = 0;    // grows when the other end takes something
    bool empty = true;     // it has taken all
    bool gone = false;     // nobody lives there any more, or nobody can be reached there
    bool no_room = false;  // there is no way, for there is no room for another one
  };
  // Cold: may ask the system.
  virtual State state(uint32_t way) = 0;
};

}  // namespace urma
