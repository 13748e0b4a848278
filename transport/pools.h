#pragma once

#include <array>

#include "base/turns.h"
#include "transport/rtp/received_window.h"
#include "transport/rtp/sent_window.h"
#include "transport/upper.h"
#include "wire/icrc.h"

namespace urma::transport {

// A slice that waits to be pulled.
struct OfferedSlice {
  SliceRef slice;
  uint32_t bytes = 0;
};
using OfferQueue = ChunkQueue<OfferedSlice, 32>;

// A burst that is being written: its packets, and where each is remembered. Only one channel writes
// at a time, so all channels of a device share it.
struct Burst {
  static constexpr size_t capacity = 64;

  std::array<PacketSlot, capacity> slots;
  std::array<SentWindow::Packet*, capacity> packets;
  std::array<Psn, capacity> psns;
};

// Memory that all channels of a device share. The medium owns it.
struct Pools {
  SentWindow::Pool sent;
  OfferQueue::Pool offered;
  ReceivedWindow::Pool bitmaps;
  Turns active;  // channels that may have something to send
  Burst burst;
  std::array<SliceRef, Burst::capacity> delivered;  // by the acknowledgement at hand
  bool setup_waits = false;                         // set-up packets leave first
  IcrcPrefix prefix;                                // of the packets sent last

  // `packets`: in flight over all channels.
  Pools(uint32_t packets, uint32_t slices, uint32_t channels);
};

}  // namespace urma::transport
