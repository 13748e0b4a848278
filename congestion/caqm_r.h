// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "congestion/guard.h"
#include "congestion/port_meter.h"

namespace urma::congestion {

// C-AQM with explicit rates, an extension: each packet names the rate of its sender, and a port
// that is full answers with the rate that each of its flows may use. A sender below that rate
// doubles its own in each round trip, as long as no port refuses.
class CaqmR final : public Guarded {
 public:
  explicit CaqmR(const Settings& settings) : Guarded(settings, Told::rates) {}

 private:
  Signal ask(const Sent& event, bool may_increase) override;
  void obey(const Acknowledged& event, const Feedback& feedback) override;
  void begin_round() override;

  // A port has refused an increase or named a rate. From then on, only one packet in a round asks
  // for an increase.
  bool limited_ : 1 = false;
  bool asked_ : 1 = false;
  // The rounds in which the window was in use. A flow that does not use it would not use an
  // increase, and the port would take its question for one of a flow that lacks its share.
  static constexpr uint8_t this_round = 1, last_round = 2;
  uint8_t used_ : 2 = 0;
  // A port named a rate in this round or the one before. Such a port names a larger rate without
  // being asked, and a request would tell the other ports that the flow has less than its share.
  bool capped_ : 1 = false;
  bool named_ : 1 = false;  // in this round
};

// The port's half. A flow of rate r sends r * d bytes in a base round trip d, so the sum of
// bytes / (r * d) over its packets is 1 in each d, whatever r is: the port counts its flows, and
// knows the fair rate one round trip after a flow came or left. `excess_` corrects it for flows
// that are limited elsewhere.
class CaqmRMeter final : public PortMeter {
 public:
  explicit CaqmRMeter(const PortSettings& settings);

  Signal arrive(Time now, uint32_t bytes, uint64_t queue_bytes, Signal in) override;
  Signal depart(Time, uint32_t, uint64_t, Signal in) override { return in; }

  double flows() const { return flows_; }
  double fair_rate() const { return fair_; }  // bytes per second
  double excess() const { return excess_; }

 private:
  static constexpr unsigned slots = 8;  // of one base round trip; a power of two

  void advance(Time now, uint64_t queue_bytes);
  void end_slot(uint64_t queue_bytes);
  void correct(double gain, double target);
  void set_fair(double bytes_per_second);
  double slot_seconds() const { return round_ / slots; }

  Time slot_end_ = Time::min();
  float rate_;   // bytes per second
  float round_;  // seconds
  // Sums of the present slot.
  float arrived_ = 0;                  // bytes
  float refused_ = 0;                  // flows below the fair rate that were refused an increase
  float capped_ = 0;                   // bytes of flows at the fair rate
  float granted_ = 0;                  // bytes of increases
  std::array<float, slots> counts_{};  // flows, of the last slots and the present one, `slot_`
  float flows_ = 1;
  float load_ = 0;           // bytes per second, averaged
  float refused_flows_ = 0;  // `refused_` as an average of slots
  float capped_load_ = 0;    // `capped_` likewise, in bytes per second
  float growth_ = 0;         // bytes per second that grants of the last round trip will add
  float excess_ = 1;         // factor of the fair rate; above 1 if flows do not use all of theirs
  float fair_ = 0;           // bytes per second
  float tokens_ = 0;         // bytes of increases that may be granted
  uint32_t seed_;
  uint32_t packets_ = 0;
  float fair_part_ = 0;  // of the step from `fair_low_` to the next code
  uint16_t packet_;      // bytes of the largest packet
  uint8_t fair_low_ = 0;
  uint8_t slot_ : 7 = 0;
  bool last_hop_ : 1;
};

}  // namespace urma::congestion
