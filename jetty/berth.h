#pragma once

#include <cstdint>
#include <span>

#include "urma/core/time.h"
#include "urma/core/work.h"
#include "wire/frame.h"

namespace urma::jetty {

// A work in its berth: written by the posting thread, then read by the engine until its completion
// is polled.
struct Berth {
  Operation operation;
  bool with_immediate;
  bool with_notify;  // its target is in Jfs::notify
  bool signalled;
  bool solicited;
  uint8_t piece_count;
  Status verdict;  // not ok: found wrong when posted, to be completed with this
  Order order;
  Fence fence;
  Atomic atomic;
  Update update;
  bool doubtful;  // engine: executed on memory that was revoked meanwhile
  uint32_t bytes;
  uint64_t tag;
  uint64_t immediate;  // or what is notified, or an atomic's operand
  PeerId peer;
  uint64_t address;
  TokenId token_id;
  TokenValue token;
  JettyId target;
  TokenValue target_token;
  Piece piece;  // the only one, or none; several lie in Jfs::pieces
};

// Whether a write also tells its target, when all of it is there.
inline bool tells(const Berth& berth) { return berth.with_immediate || berth.with_notify; }
// Whether it may have to wait for works before it.
inline bool asks_order(const Berth& berth) {
  return berth.order != Order::none || berth.fence != Fence::none;
}
// Whether it may be copied where it goes.
inline bool is_mapped(const Berth& berth) {
  return berth.operation != Operation::send && berth.address >> 63 != 0;
}
// Whether works behind it may have to wait for what it brings back.
inline bool fetches(const Berth& berth) {
  return berth.operation == Operation::read || berth.operation == Operation::atomic;
}
// Whether its target must keep what it brings back, so that it can be told again.
inline bool keeps_result(const Berth& berth) {
  return berth.operation == Operation::atomic && berth.atomic != Atomic::store;
}

// Where a write notifies. Few works have one, and berths lie close together: it lies apart.
struct NotifyTarget {
  uint64_t address;
  TokenId token_id;
  TokenValue token;
};

// What an atomic expects, and has brought back; where a write's NotifyTarget lies.
struct AtomicValues {
  uint64_t expected;
  uint64_t fetched;  // engine
};
static_assert(sizeof(AtomicValues) == sizeof(NotifyTarget));

// What the engine knows of a work, beside its berth.
struct WorkState {
  Time progress{};  // when something of it last happened
  Time cancelled_at{};
  uint32_t flow = UINT32_MAX;
  uint32_t number = 0;  // in its flow
  uint32_t cut_bytes = 0;
  uint16_t open_slices = 0;
  uint16_t older = UINT16_MAX;  // in post order
  uint16_t newer = UINT16_MAX;
  uint16_t next_to_cut = UINT16_MAX;  // in its flow
  Status status = Status::ok;         // of what has ended so far
  Order order = Order::none;          // as its target is told
  bool held = false;                  // has not begun, for the works before it
  bool cut = false;                   // nothing of it remains to be cut
  bool in_line = false;               // waits in its flow to be cut
  bool executed = false;              // some slice of it was, or may have been
  bool cancelled = false;
  bool timed_out = false;  // cancelled because its time was up
  bool overdue = false;
};

inline bool overlaps(std::span<const Piece> pieces, const std::byte* base, uint64_t bytes) {
  for (const Piece& piece : pieces) {
    if (piece.data < base + bytes && base < piece.data + piece.bytes) return true;
  }
  return false;
}

}  // namespace urma::jetty
