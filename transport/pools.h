// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "base/chunk_queue.h"
#include "base/turns.h"
#include "transport/upper.h"

namespace urma::transport {

// A slice that waits to be pulled.
struct OfferedSlice {
  SliceRef slice;
  uint32_t bytes = 0;
};
using OfferQueue = ChunkQueue<OfferedSlice, 32>;

// The packets of a burst that is being written. Only one channel writes at a time, so all channels
// of a device share it.
struct Burst {
  static constexpr size_t capacity = 64;

  std::array<PacketSlot, capacity> slots;
};

// Memory that all channels of a device share, whatever its medium. The medium owns it.
struct Pools {
  OfferQueue::Pool offered;
  Turns active;  // channels that may have something to send
  Burst burst;
  std::array<SliceRef, Burst::capacity> delivered;  // by the acknowledgement that is being handled
  bool setup_waits = false;                         // set-up packets leave first

  Pools(uint32_t slices, uint32_t channels)
      : offered(slices / 32 + classes * channels), active(channels), burst(), delivered() {}
};

}  // namespace urma::transport
