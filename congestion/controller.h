// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "congestion/signal.h"
#include "urma/core/time.h"

namespace urma::congestion {

// A packet that leaves now.
struct Sent {
  Time now;
  uint64_t number;  // differs for each packet, such as the unwrapped PSN
  uint32_t bytes;
  bool again;               // a retransmission
  uint64_t inflight_bytes;  // before this packet
};

// A packet that `request` was called for is written, and has fewer bytes than were foreseen.
struct Written {
  uint64_t number;  // as in `Sent`
  uint32_t unused_bytes;
};

// The report of one acknowledgement about the packets that arrived since the one before.
struct Feedback {
  uint32_t marked_packets = 0;  // with C
  uint64_t marked_bytes = 0;    // with the mark "congestion experienced" of ECN
  bool increase = false;        // I: the switches let the sender send more
  bool last_hop = false;        // Loc
  bool switched = false;        // S
  // The sum of the increases that were granted, in units of 32 bytes. caqm_r, if there are packets
  // with C: the least of their rate codes.
  uint16_t hint = 0;
  uint8_t switch_queue = 0;  // UBQ: the largest
  // UBQ of the acknowledgement that brought the report. The packets of this sender did not make
  // that queue, so it must not slow them.
  uint8_t ack_queue = 0;
};

// An acknowledgement arrived.
struct Acknowledged {
  Time now;
  Duration rtt;                        // smoothed
  uint64_t bytes;                      // newly acknowledged; may be zero if there is feedback
  uint64_t inflight_bytes;             // before this acknowledgement
  Duration sample{};                   // the round trip of this acknowledgement; zero if unknown
  Duration least_rtt{};                // zero if unknown
  const Feedback* feedback = nullptr;  // null if there is nothing new; valid during the call
};

// Packets were found lost.
struct Lost {
  Time now;
  Duration rtt;  // smoothed
  uint64_t bytes;
  bool timed_out;  // no packet was received for a retransmission time-out
};

// A congestion notification packet (CNP, UB 6.6.1).
struct Notified {
  Time now;
  Duration rtt;   // smoothed
  bool severe;    // its ECN field is 3
  bool last_hop;  // Loc
};

// The packets of the last loss arrived after all, so the reaction to it was wrong.
struct Spurious {
  Time now;
};

// How much the sender may send, and when.
struct Allowance {
  uint64_t window_bytes;  // how many bytes may be in flight
  Time not_before;        // when the next packet may leave
};

// Decides how much one channel or route may send, and when. Its owner calls it on the engine's
// thread. It does not know packets or peers, reads no clock and has no timers. Each event is a
// struct, so that a new field changes no signature.
//
// A window below one packet is expressed by time: the window is one packet, and `not_before` is
// later. A packet may leave although the window is full if nothing is in flight, but never before
// `not_before`.
class Controller {
 public:
  static constexpr size_t storage = 64;

  virtual ~Controller() = default;
  // Called once for each packet that leaves, retransmissions included. Returns what the packet asks
  // of the switches, and sets `not_before` to when the next one may leave.
  virtual Signal request(const Sent& event) = 0;
  // A controller that paces lets the next packet leave earlier. Otherwise small packets would leave
  // at a part of its rate, and never fill its window.
  virtual void correct(const Written&) {}
  virtual void handle(const Acknowledged& event) = 0;
  virtual void handle(const Lost& event) = 0;
  virtual void handle(const Notified& event) = 0;
  virtual void handle(const Spurious& event) = 0;
  virtual Allowance allowance(Time now) const = 0;
  // The window of `allowance`, for owners of controllers that do not pace.
  virtual uint64_t window_bytes() const = 0;
  // Returns the rate at which packets leave as long as the window permits; zero if the controller
  // does not pace.
  virtual double bytes_per_second() const { return 0; }
};

// The facts about a channel and its host that a controller is made with.
struct Settings {
  uint32_t packet_bytes = 4096;    // the channel's MTU
  uint64_t limit_bytes = 4 << 20;  // the window never exceeds what the receiver can buffer
  // The rate of this host's link; zero if it is unknown. A controller that paces never sends
  // faster, whatever receivers and switches report.
  double bytes_per_second = 0;
  Duration base_rtt{};  // without queues; if zero, the least measured round trip is used
  // How late an end may run, which is at least how late its timers expire. A controller that reads
  // delays does not take a delay of this length for a queue. A sender that was late may catch up
  // with this much of its schedule. A window that switches have granted has room for the packets
  // that a sender then sends at once. On a busy machine ends run later: a sender to which switches
  // name rates may then catch up with 64 KiB, if that is more.
  Duration lateness{};
  uint32_t seed = 0;  // another one for each channel
};

// The feedback that the receiver has to return to the sender, and the part of switches in it.
enum class Needs : uint8_t {
  nothing,
  marks,          // ECN, and the number of marked bytes in acknowledgements
  notifications,  // ECN, and CNPs
  increases,      // C-AQM as in UB 6.6.1.3
  rates,          // C-AQM with rate codes as hints
};

// A row of the table of controllers.
struct ControllerKind {
  std::string_view name;
  std::string_view summary;
  Controller* (*make)(void* storage, const Settings& settings);
  Needs needs = Needs::nothing;
  bool paces = false;  // the owner must call `request`, and send nothing before `not_before`
};

std::span<const ControllerKind> controllers();
// Returns null if there is no controller of that name.
const ControllerKind* find_controller(std::string_view name);

}  // namespace urma::congestion
