// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "jetty/leases.h"
#include "urma/core/time.h"
#include "urma/core/work.h"
#include "wire/frame.h"

namespace urma::jetty {

// A work in its berth: the posting thread writes it, then the engine reads it until its completion
// has been polled.
struct Berth {
  Operation operation;
  bool with_immediate;  // `immediate` is delivered to the target's application
  bool with_notify;     // the notification's target is in Jfs::notify
  bool signalled;       // a success has a completion, too; a failure always has one
  bool solicited;       // wakes a target that waits for solicited completions only
  uint8_t piece_count;  // of local memory; of an atomic, 1 if that is to have the fetched value
  Status verdict;      // if not ok, the work was found invalid when posted, and completes with this
  Order order;         // as asked for; WorkState::order is what was sent
  Fence fence;         // which works before it must have ended before it begins
  Atomic atomic;       // which atomic, if the operation is one
  Update update;       // how a notification changes the notified word
  uint8_t group_hint;  // which member of a group receives it
  bool doubtful;       // engine: an atomic was executed on memory that may have been revoked
  bool staged;         // some of its memory is an accelerator's: its data is copied by Staging
  uint32_t bytes;      // of all pieces
  uint64_t tag;        // the application's, repeated in the completion
  uint64_t immediate;  // or the notified value, or an atomic's operand
  PeerId peer;         // of the target
  uint64_t address;    // of the remote memory; the highest bit is set if it may be mapped here
  TokenId token_id;    // of the segment that contains it
  TokenValue token;    // proves the right to use the segment
  JettyId target;      // which receives a send, an immediate or a notification
  TokenValue target_token;  // proves the right to send to it
  Piece piece;              // the only piece, or none; several are in Jfs::pieces
};

// Returns whether the work notifies its target (a write with immediate or notification) once all of
// its data is in place.
inline bool notifies(const Berth& berth) { return berth.with_immediate || berth.with_notify; }
// Returns whether the work may have to wait for works before it.
inline bool asks_order(const Berth& berth) {
  return berth.order != Order::none || berth.fence != Fence::none;
}
// Returns whether the work accesses memory that may be mapped here, so that it can be a plain copy.
inline bool is_mapped(const Berth& berth) {
  return berth.operation != Operation::send && berth.address >> 63 != 0;
}
// Returns whether the work brings data back, for which later works may have to wait.
inline bool fetches(const Berth& berth) {
  return berth.operation == Operation::read || berth.operation == Operation::atomic;
}
// Returns whether the target must keep the work's result, so that it can answer again.
inline bool keeps_result(const Berth& berth) {
  return berth.operation == Operation::atomic && berth.atomic != Atomic::store;
}

// The word that a write notifies. Few works notify, so it is stored outside the berths, which are
// close together.
struct NotifyTarget {
  uint64_t address;
  TokenId token_id;
  TokenValue token;
};

// The expected and the fetched value of an atomic, stored where a write has its NotifyTarget.
struct AtomicValues {
  uint64_t expected;
  uint64_t fetched;  // engine
};
static_assert(sizeof(AtomicValues) == sizeof(NotifyTarget));

// The index of no flow.
inline constexpr uint32_t no_flow = UINT32_MAX;

// The engine's state of a work, stored outside its berth.
struct WorkState {
  Time progress{};      // when it last made progress
  Time cancelled_at{};  // from then on, the withdrawal of its slices may take a limited time
  uint32_t flow = no_flow;
  uint32_t number = 0;                  // in its flow
  uint32_t cut_bytes = 0;               // of its bytes, those that are in slices
  uint16_t open_slices = 0;             // slices that have not ended
  uint16_t older = Leases::none;        // berth of the outstanding work before it, in post order
  uint16_t newer = Leases::none;        // berth of the one after it
  uint16_t next_to_cut = Leases::none;  // in its flow
  Status status = Status::ok;           // combined status of its slices that have ended
  Order order = Order::none;            // as sent to its target
  bool held = false;                    // has not begun, because it waits for works before it
  bool cut = false;                     // no part of it remains to be cut
  bool in_line = false;                 // it is in its flow's line to be cut
  bool executed = false;                // a slice of it was executed, or may have been
  bool by_packets = false;              // a device has failed to carry it
  bool cancelled = false;
  bool timed_out = false;     // cancelled because it timed out
  bool overdue = false;       // its withdrawal took too long: its slices end without it
  bool inaccessible = false;  // its memory could not be copied: it is to be cancelled
};

inline bool overlaps(std::span<const Piece> pieces, const std::byte* base, uint64_t bytes) {
  for (const Piece& piece : pieces) {
    if (piece.data < base + bytes && base < piece.data + piece.bytes) return true;
  }
  return false;
}

}  // namespace urma::jetty
