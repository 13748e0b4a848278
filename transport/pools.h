#pragma once

#include <array>

#include "base/turns.h"
#include "transport/rtp/received_window.h"
#include "transport/rtp/sent_window.h"
#include "transport/upper.h"
#include "wire/icrc.h"

namespace urma::transport {

// What waits to be pulled, of one class.
struct OfferedSlice {
  SliceRef slice;
  uint32_t bytes = 0;
};
using OfferQueue = ChunkQueue<OfferedSlice, 32>;

// A burst in the making: what is written, and where it is remembered. One at a time, so that the
// channels of an engine share it.
struct Burst {
  static constexpr size_t capacity = 64;

  std::array<PacketSlot, capacity> slots;
  std::array<SentWindow::Packet*, capacity> packets;
  std::array<Psn, capacity> psns;
};

// Memory that the channels of an engine share.
struct Pools {
  SentWindow::Pool sent;
  OfferQueue::Pool offered;
  ReceivedWindow::Pool bitmaps;
  Turns active;  // channels that may have something to send
  Burst burst;
  std::array<SliceRef, Burst::capacity> delivered;  // by one ack, at a time
  bool setup_waits = false;                         // set-up packets are to leave first
  IcrcPrefix prefix;                                // of what was sent last

  // `packets`: in flight over all channels.
  Pools(uint32_t packets, uint32_t slices, uint32_t channels);
};

}  // namespace urma::transport
