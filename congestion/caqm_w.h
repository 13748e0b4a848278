// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "congestion/guard.h"
#include "congestion/port_meter.h"

namespace urma::congestion {

// C-AQM of UB 6.6.1.3 (UB 4.6.5): each packet asks for an increase of the window, the port grants
// or refuses it, and marks packets when it is overloaded. UB leaves to the vendor how much a sender
// asks for and how much a mark takes. Here each packet asks for its own size in slow start;
// afterwards all packets of a round trip together ask for a quarter of a packet. A mark takes half
// a packet.
class CaqmW final : public Guarded {
 public:
  explicit CaqmW(const Settings& settings) : Guarded(settings, Told::windows) {}

 private:
  Signal ask(const Sent& event, bool may_increase) override;
  void obey(const Acknowledged& event, const Feedback& feedback) override;
  void begin_round() override;
  double wish(double bytes) const;
  double most_increase(double bytes) const;

  bool granted_ = false;        // in this round
  uint8_t rounds_granted_ = 0;  // since a port last refused or marked
};

// The port's half: a budget of bytes by which windows may still grow, computed anew in each slot
// from the port's spare rate and its queue. When a packet leaves, the increase that it was granted
// is taken from the budget; if it is marked, the bytes that its sender will give up are added.
class CaqmWMeter final : public PortMeter {
 public:
  explicit CaqmWMeter(const PortSettings& settings);

  Signal arrive(Time now, uint32_t bytes, uint64_t queue_bytes, Signal in) override;
  Signal depart(Time now, uint32_t bytes, uint64_t queue_bytes, Signal in) override;

  double budget() const { return budget_; }  // bytes; negative if the port is overloaded

 private:
  void advance(Time now, uint64_t queue_bytes);
  void end_slot(uint64_t queue_bytes);
  double slot_seconds() const;
  void refuse(Signal& signal, bool mark) const;
  void expect_cut();
  double fair_window() const;  // bytes

  Time slot_end_ = Time::min();
  double rate_;   // bytes per second
  double round_;  // seconds
  double packet_;
  double share_of_wish_;  // the hint of a window that fills the port, as a share of its packet
  // Sums of the present slot.
  double sent_ = 0;     // bytes
  double granted_ = 0;  // bytes
  double counted_ = 0;  // flows
  double flows_ = 1;
  double growth_ = 0;  // bytes of windows: the grants of the last round trip, less its marks
  double budget_ = 0;  // bytes
  uint32_t seed_;
  uint32_t packets_ = 0;
  bool last_hop_;
};

}  // namespace urma::congestion
