#pragma once

#include <cstdint>

namespace urma {

// What one device has seen since it was opened. All are totals that only grow, unless the comment
// says "now". Taken at one moment on the engine's thread.
struct Statistics {
  // Works of this process.
  uint64_t works = 0;               // taken from Jetties
  uint64_t completions = 0;         // shown to Jetties, arrivals included
  uint64_t receiver_not_ready = 0;  // answers "receiver not ready" (RNR)
  uint64_t retries = 0;             // slices sent again as transactions
  uint64_t timeouts = 0;            // works whose time was up
  uint64_t unknown = 0;             // works that ended so
  uint64_t copied = 0;  // slices copied to or from mapped memory, of which nobody is told
  uint64_t copied_bytes = 0;
  uint64_t copied_past_caches = 0;  // of these: past the caches, for their works are too large

  // Works of peers.
  uint64_t executed = 0;   // slices
  uint64_t refused = 0;    // token, bounds, rights, unknown operation
  uint64_t not_ready = 0;  // told "receiver not ready"
  uint64_t repeated = 0;   // came again after they had been executed
  uint64_t withdrawn = 0;  // given up by their initiator

  // Packets.
  uint64_t packets_sent = 0;  // data, retransmissions included
  uint64_t retransmitted = 0;
  uint64_t filler = 0;
  uint64_t acks_sent = 0;
  uint64_t packets_received = 0;  // of any kind, ICRC right
  uint64_t duplicates = 0;
  uint64_t out_of_order = 0;
  uint64_t retransmission_timeouts = 0;
  uint64_t dropped_icrc = 0;
  uint64_t dropped_malformed = 0;
  uint64_t dropped_unknown_channel = 0;
  uint64_t dropped_other = 0;  // wrong source or partition, PSN out of range, no memory

  // Channels and objects.
  uint64_t channels = 0;  // now
  uint64_t peers = 0;     // now
  uint64_t jetties = 0;   // now
  uint64_t segments = 0;  // now
  // From how many bytes on works are copied past the caches: measured when the first segment is
  // imported that is mapped, and large enough. UINT64_MAX: none is.
  uint64_t past_caches_from = UINT64_MAX;
  uint64_t channels_made = 0;
  uint64_t channels_lost = 0;

  // The driver.
  uint64_t frames_sent = 0;
  uint64_t frames_received = 0;
  uint64_t send_calls = 0;  // system calls, or their like
  uint64_t receive_calls = 0;
  uint64_t send_failures = 0;  // frames that the system refused: too large, filtered, no memory
  uint64_t unreachable = 0;    // the network said so
  uint64_t faults_injected = 0;
  uint64_t passes = 0;  // of the engine
};

}  // namespace urma
