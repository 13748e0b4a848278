// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/array_layout.h"
#include "jetty/leases.h"
#include "urma/core/work.h"
#include "wire/frame.h"

namespace urma::jetty {

// A buffer that waits for a message.
struct ReceiveSlot {
  uint64_t tag;
  uint32_t bytes;
  uint8_t piece_count;
  bool staged;  // some of it is memory of an accelerator: data reaches it through Staging
  Piece piece;  // the only piece, or none; several are in Jfr::pieces
};

// A Jetty's receive queue (UB: JFR): the application posts buffers for messages in its slots, and
// the engine takes these in post order. It does not know which message takes a slot, nor when the
// slot completes. `Queues` owns it. Each function belongs to one of three threads: the one that
// posts, the one that polls, and the one that runs the engine.
class Jfr : public Leases {
 public:
  // Throws std::bad_alloc.
  explicit Jfr(uint16_t slots);

  // ---- posting thread

  // Posts buffers for one message; returns 1, or 0 if no slot is vacant or there are too many
  // buffers. Each buffer must be memory of this process.
  size_t post(std::span<const Buffer> buffers, uint64_t tag);

  // ---- polling thread

  // The completion of a message, or of an immediate without a slot (then `lease` is `none`), has
  // been polled.
  void polled(uint16_t lease);

  // ---- engine

  const ReceiveSlot& slot(uint16_t lease) const { return begin<ReceiveSlot>()[lease]; }
  std::span<const Piece> pieces(uint16_t lease) const;
  // Returns how many completions of immediates have been polled. At most as many as there are
  // receive slots may be unpolled.
  uint32_t immediates_polled() const { return counter().load(std::memory_order_acquire); }
  // Returns memory for as many leases as there are slots, for slots that were taken but not used.
  uint16_t* recycled() { return owners_ring(); }

 private:
  struct Counts {
    size_t slots;
  };
  using Layout = ArrayLayout<Counts, ArrayOf<ReceiveSlot, &Counts::slots>,
                             ArrayOf<Piece, &Counts::slots, max_pieces>>;

  template <class Item>
  Item* begin() const {
    return Layout::begin<Item>(behind(), {.slots = count()});
  }
  Piece* all_pieces(uint16_t lease) const { return begin<Piece>() + size_t{lease} * max_pieces; }
};

}  // namespace urma::jetty
