// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "congestion/controller.h"

namespace urma::congestion {

// Additive increase, multiplicative decrease, with slow start. Loss is its only signal. Loss
// shrinks the window at most once per round trip, so that a burst of lost packets counts as one
// congestion. The window holds at least four packets, so N senders to one port keep at least 4 N
// packets in flight. Those that the path does not hold wait in the port's queue.
class Aimd final : public Controller {
 public:
  explicit Aimd(const Settings& settings);

  Signal request(const Sent&) override { return {}; }
  void handle(const Acknowledged& event) override;
  void handle(const Lost& event) override;
  void handle(const Notified&) override {}
  void handle(const Spurious&) override {}
  Allowance allowance(Time) const override { return {window_, Time::min()}; }
  uint64_t window_bytes() const override { return window_; }

 private:
  void clamp();

  uint64_t limit_;
  uint64_t window_;
  uint64_t threshold_;
  Time recovery_until_{};  // losses before this time belong to the last decrease
  uint32_t packet_;
};

}  // namespace urma::congestion
