#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "urma/core/endpoint.h"
#include "urma/core/rights.h"

namespace urma {

// Bytes that belong to somebody else: registered or posted memory on its way out.
struct Piece {
  const std::byte* data = nullptr;
  uint32_t bytes = 0;
};

inline constexpr unsigned max_pieces = 16;
inline constexpr uint32_t largest_rtp_mtu = 8192;  // payload of a packet where packets may be lost
inline constexpr unsigned most_paths = 8;          // between two devices

// A part of somebody's segment, and what shows that it may be used so.
struct MemoryRange {
  uint64_t address = 0;  // the owner's
  uint64_t bytes = 0;    // not zero
  TokenId id{};
  TokenValue token{};
  Rights wanted = Rights::local_only;
};

// One packet on its way out, in a frame lent by a driver: headers in the driver's memory, payload
// where it lies, padding and ICRC behind it. Whoever holds the frame fills it; `send` gives it
// back.
struct TxFrame {
  static constexpr unsigned head_room = 160;
  static constexpr unsigned tail_room = 8;

  std::byte* head = nullptr;  // head_room bytes; set by the driver
  uint16_t head_bytes = 0;
  uint8_t piece_count = 0;
  uint8_t tail_bytes = 0;
  uint8_t path = 0;  // the one of the port's on which it is to leave
  std::array<std::byte, tail_room> tail{};
  Endpoint to;
  std::array<Piece, max_pieces> pieces;

  size_t bytes() const {
    size_t sum = size_t{head_bytes} + tail_bytes;
    for (unsigned i = 0; i < piece_count; ++i) sum += pieces[i].bytes;
    return sum;
  }
};

// One packet that came in. `data` is the driver's memory until the frame is released.
struct RxFrame {
  const std::byte* data = nullptr;
  uint32_t bytes = 0;
  uint32_t cookie = 0;             // the driver's
  const Endpoint* from = nullptr;  // as long as `data`
  uint8_t path = 0;                // the one of the port's on which it came
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
