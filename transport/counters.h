// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "transport/channel.h"
#include "urma/core/endpoint.h"

namespace urma::transport {

// Counts the events in the transport of one device since it was opened. Only the thread that runs
// the engine uses it.
struct Counters {
  // Packets sent.
  uint64_t sent = 0;  // data packets, retransmissions included
  uint64_t retransmitted = 0;
  uint64_t acknowledged_bytes = 0;  // of data packets with headers, of each packet once
  uint64_t filler = 0;              // of cancelled slices, and keep-alives
  uint64_t paced = 0;               // of `sent`, by channels whose packets wait for their departure
  uint64_t trains = 0;              // the bursts in which these left
  uint64_t acks_sent = 0;
  uint64_t setup_sent = 0;
  uint64_t datagrams_sent = 0;  // accepted from the layer above
  uint64_t datagrams_lost = 0;  // of these, dropped because the way was full
  // Packets received.
  uint64_t received = 0;  // of any kind, with a correct ICRC
  uint64_t acks_received = 0;
  uint64_t duplicates = 0;
  uint64_t out_of_order = 0;
  uint64_t marked = 0;             // by ECN, on channels whose peer takes reports
  uint64_t overtaken_reports = 0;  // of congestion, and so ignored
  uint64_t notifications = 0;      // of congestion
  // Packets dropped, by reason.
  uint64_t bad_icrc = 0;
  uint64_t malformed = 0;  // or taken without its CCI, which was not agreed on
  uint64_t unknown_channel = 0;
  uint64_t wrong_source = 0;  // the source address does not match the claimed EID
  uint64_t invalid_psn = 0;
  uint64_t no_memory = 0;  // out of order without a bitmap, or refused by the layer above
  uint64_t wrong_partition = 0;
  // Set-up messages. Each message received is in `setup_received`, and either has an effect, or is
  // answered, or is counted once: in malformed, unknown_channel, wrong_source or wrong_partition
  // above, or by one of the three reasons below (docs/protocol.md, Making a channel).
  uint64_t setup_received = 0;
  uint64_t setup_incarnation = 0;  // ignored: names another incarnation of this device or its peer
  uint64_t setup_late = 0;         // ignored: about a set-up that is over or was never begun
  uint64_t setup_declined = 0;     // ignored: valid, but this device does not want it now
  uint64_t setup_cookies = 0;      // RETRY: OPENs that have to bring back a cookie
  uint64_t setup_refused = 0;      // REFUSE: OPENs that are answered with a refusal
  uint64_t setup_unsent = 0;       // not sent: queue or way full, path gone, limit on RESETs
  // Events.
  uint64_t timeouts = 0;  // retransmission time-outs
  uint64_t channels_made = 0;
  uint64_t channels_lost = 0;
  uint64_t channels_without_reports = 0;  // made without the reports that the controller needs
};

// Counts the events of peers, and keeps the address of the latest one, for logs and statistics.
struct PeerNews {
  struct Of {
    uint64_t count = 0;
    Endpoint latest;
  };
  Of made;       // channels
  Of path_lost;  // one of several
  Of path_back;
  Of path_added;
  Of path_removed;
  Of silent;               // peers that stalled and keep their channel
  std::array<Of, 7> down;  // by Why: channels that ended or were not made, peers that are over
  Of& of(Why why) { return down[static_cast<size_t>(why)]; }
  const Of& of(Why why) const { return down[static_cast<size_t>(why)]; }
  static void note(Of& news, const Endpoint& whom) {
    ++news.count;
    news.latest = whom;
  }
};

}  // namespace urma::transport
