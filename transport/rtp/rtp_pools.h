// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "transport/pools.h"
#include "transport/rtp/received_window.h"
#include "transport/rtp/sent_window.h"
#include "transport/rtp/waits.h"
#include "wire/icrc.h"

namespace urma::transport {

// For each packet of the burst that is being written: its record in the SentWindow, and its number.
struct SentBurst {
  std::array<SentWindow::Packet*, Burst::capacity> packets;
  std::array<Psn, Burst::capacity> psns;
};

// All RTP channels of a device share this: memory, and how long they wait. The medium owns it; only
// the engine thread uses it.
struct RtpPools : Pools {
  // No port is taken for more punctual than this. Many senders that begin at once make a queue of
  // many round trips, before any of them has measured it: shorter time-outs would repeat all that
  // waits in it (docs/notes/tried.md).
  static constexpr Duration least_lateness = std::chrono::milliseconds(1);

  SentWindow::Pool sent;
  ReceivedWindow::Pool bitmaps;
  SentBurst sent_burst;
  IcrcPrefix prefix;  // of the packets sent last: their addresses and sizes recur
  const Waits waits;

  // `packets`: how many may be in flight over all channels. `lateness`: how late an end may run.
  RtpPools(uint32_t packets, uint32_t slices, uint32_t channels, Duration lateness = least_lateness)
      : Pools(slices, channels),
        sent(packets / 32 + channels),
        bitmaps(channels),
        sent_burst(),
        waits(std::max(lateness, least_lateness)) {}
};

}  // namespace urma::transport
