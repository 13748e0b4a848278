#pragma once

#include <array>

#include "transport/pools.h"
#include "transport/rtp/received_window.h"
#include "transport/rtp/sent_window.h"
#include "wire/icrc.h"

namespace urma::transport {

// For each packet of the burst that is being written: its record in the SentWindow, and its number.
struct SentBurst {
  std::array<SentWindow::Packet*, Burst::capacity> packets;
  std::array<Psn, Burst::capacity> psns;
};

// Memory that all RTP channels of a device share. The medium owns it; only the engine thread uses
// it.
struct RtpPools : Pools {
  SentWindow::Pool sent;
  ReceivedWindow::Pool bitmaps;
  SentBurst sent_burst;
  IcrcPrefix prefix;  // of the packets sent last: their addresses and sizes recur

  // `packets`: how many may be in flight over all channels.
  RtpPools(uint32_t packets, uint32_t slices, uint32_t channels)
      : Pools(slices, channels), sent(packets / 32 + channels), bitmaps(channels), sent_burst() {}
};

}  // namespace urma::transport
