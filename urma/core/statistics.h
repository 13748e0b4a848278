// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "urma/core/export.h"

namespace urma {

// The counters of one device, all taken at the same moment (Device::stats). `all_metrics` has a row
// for each field, in the same order, with its unit, its window and a sentence on what it counts;
// urma_stat prints these rows. A slice is a part of a work that is sent, retried and answered as a
// whole. Fields count since open, except those marked "present".
struct Statistics {
  // Works of this process.
  uint64_t works = 0;               // works taken from Jetties
  uint64_t completions = 0;         // completions delivered to Jetties
  uint64_t receiver_not_ready = 0;  // answers of targets without a vacant receive slot
  uint64_t retries = 0;             // slices sent again after such an answer, or on a new channel
  uint64_t timeouts = 0;            // works that ended after operation_timeout
  uint64_t unknown = 0;             // works that may or may not have executed
  uint64_t held = 0;                // works that waited for earlier ones: fence or order
  uint64_t copied = 0;              // slices copied to or from mapped memory, without a packet
  uint64_t copied_bytes = 0;        // bytes of these slices
  uint64_t copied_past_caches = 0;  // those of `copied` that bypassed the caches
  uint64_t carried = 0;             // slices that RDMA adapters or GPUs moved by themselves
  uint64_t carried_bytes = 0;       // bytes of these slices
  uint64_t past_caches_from = UINT64_MAX;  // present: least size of works that do; UINT64_MAX: none

  // Works of peers. The turn of a slice comes when those ordered before it were executed.
  uint64_t executed = 0;   // slices executed here
  uint64_t refused = 0;    // slices refused: token, bounds, rights or operation
  uint64_t not_ready = 0;  // answers from here that no receive slot was vacant
  uint64_t repeated = 0;   // slices received again after their execution
  uint64_t withdrawn = 0;  // slices cancelled by the peer before they had arrived
  uint64_t ignored = 0;    // slices dropped: their peer sent too many wrong tokens
  uint64_t parked = 0;     // slices that arrived before their turn and were kept
  uint64_t too_early = 0;  // slices that arrived before their turn and were not kept

  // Messages of unreliable Jetties.
  uint64_t datagrams_sent = 0;      // by this process
  uint64_t datagrams_received = 0;  // delivered here
  uint64_t datagrams_dropped = 0;   // dropped here, on arrival or before sending

  // Packets of channels.
  uint64_t packets_sent = 0;        // data packets, retransmissions included
  uint64_t retransmitted = 0;       // packets sent again, because they seemed lost
  uint64_t acknowledged_bytes = 0;  // bytes of these packets that were acknowledged, each once
  uint64_t filler = 0;              // packets without data: for cancelled ones, or to stay alive
  uint64_t paced_packets = 0;       // data packets that left at times set by congestion control
  uint64_t paced_trains = 0;        // bursts in which these left
  uint64_t acks_sent = 0;           // acknowledgements
  uint64_t packets_received = 0;    // packets of any kind with a correct ICRC
  uint64_t duplicates = 0;          // packets received more than once
  uint64_t out_of_order = 0;        // packets received before earlier ones
  uint64_t retransmission_timeouts = 0;  // time-outs without any acknowledgement
  uint64_t packets_marked = 0;           // packets received with an ECN mark
  uint64_t overtaken_reports = 0;        // reports of congestion ignored as outdated
  uint64_t notifications = 0;            // congestion notifications received (UB: CNP)

  // Packets dropped on arrival.
  uint64_t dropped_icrc = 0;             // wrong ICRC: damaged, or of another protocol
  uint64_t dropped_malformed = 0;        // invalid content; or taken without a CCI not agreed on
  uint64_t dropped_unknown_channel = 0;  // their channel does not exist, or has ended
  uint64_t dropped_other = 0;            // wrong source, partition or PSN, or no memory

  // Set-up messages, which make, check and end channels.
  uint64_t setup_sent = 0;         // sent, answers included
  uint64_t setup_received = 0;     // received with a correct ICRC, ignored ones included
  uint64_t setup_cookies = 0;      // OPENs answered with a cookie that must be returned
  uint64_t setup_refused = 0;      // OPENs refused: version, incarnation, or no room
  uint64_t setup_incarnation = 0;  // ignored: name another incarnation, or are forged
  uint64_t setup_late = 0;         // ignored: repeats, and answers to ended or unknown questions
  uint64_t setup_declined = 0;     // ignored: this device is closing, busy, or asked too often
  uint64_t setup_unsent = 0;       // not sent: queue full, path removed, or too many RESETs

  // Peers and objects.
  uint64_t peers = 0;                     // present: devices known, this one included
  uint64_t peers_restarted = 0;           // peers replaced by another process at their address
  uint64_t peers_left = 0;                // peers that closed their devices, or were forgotten
  uint64_t channels = 0;                  // present: channels to peers
  uint64_t channels_made = 0;             // channels made
  uint64_t channels_not_made = 0;         // attempts to make a channel that failed
  uint64_t channels_lost = 0;             // channels ended because the peer was silent
  uint64_t channels_idle = 0;             // channels closed after DeviceOptions::idle_timeout
  uint64_t channels_without_reports = 0;  // channels with a substitute congestion control
  uint64_t paths_lost = 0;                // losses of one of several paths to a peer
  uint64_t paths_back = 0;                // lost paths that carry packets again
  uint64_t jetties = 0;                   // present: Jetties, JFRs, and one of the device
  uint64_t segments = 0;                  // present: registered segments
  uint64_t not_fenced = 0;                // unregister calls after which a late copy may arrive

  // The driver and the engine.
  uint64_t frames_sent = 0;      // frames handed to the medium
  uint64_t frames_received = 0;  // frames taken from the medium
  uint64_t send_calls = 0;       // system calls to send, or their equivalent
  uint64_t receive_calls = 0;    // system calls to receive, or their equivalent
  uint64_t send_failures = 0;    // frames that the medium refused
  uint64_t unreachable = 0;      // ICMP messages: a destination cannot be reached
  uint64_t faults_injected = 0;  // faults made by the driver `fault`
  uint64_t uncaptured = 0;       // packets that the driver `pcap` could not write
  uint64_t passes = 0;           // passes of the engine
};

// The explanation of one field of Statistics, for programs that show it. Texts live as long as the
// library.
struct Metric {
  // since_open: counted since the device was opened; only grows. now: the present value.
  enum class Window : uint8_t { since_open, now };

  std::string_view name;               // of the field
  std::string_view unit;               // "packets"
  Window window = Window::since_open;  // the time to which the value refers
  std::string_view part;               // the part of the device to which the metric belongs
  std::string_view meaning;            // a sentence
  uint64_t Statistics::*value =
      nullptr;  // the field; UINT64_MAX in it means that there is no value
};
// Returns the name of the window: "since open" or "now".
constexpr std::string_view name(Metric::Window window) {
  return window == Metric::Window::now ? "now" : "since open";
}

// Returns the explanations of all fields of Statistics, in their order. Any thread may call it.
URMA_API std::span<const Metric> all_metrics();

}  // namespace urma
