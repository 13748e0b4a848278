// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "congestion/controller.h"

namespace urma::congestion {

// DCQCN: each congestion notification (CNP) cuts the rate. In each of the first periods without
// one, the rate returns half of the way to what it was before the cut; then it grows beyond that.
// The receiver sends at most one CNP in 50 us for each channel. Periods are counted when a packet
// leaves or a notification arrives.
class Dcqcn final : public Controller {
 public:
  explicit Dcqcn(const Settings& settings);

  Signal request(const Sent& event) override;
  void correct(const Written& event) override;
  void handle(const Acknowledged&) override {}
  void handle(const Lost& event) override;
  void handle(const Notified& event) override;
  void handle(const Spurious&) override {}
  Allowance allowance(Time) const override { return {limit_, next_}; }
  uint64_t window_bytes() const override { return limit_; }
  double bytes_per_second() const override { return double{rate_}; }

  // The estimate of how congested the path is, from 0 to 1.
  double alpha() const { return alpha_; }

 private:
  void pass_periods(Time now);
  void increase();
  void cut(Time now);

  Time next_ = Time::min();
  Time alpha_period_ = Time::min();  // when the present periods began; before the first packet, min
  Time rate_period_ = Time::min();
  float rate_;    // bytes per second
  float target_;  // bytes per second
  float alpha_ = 1;
  float line_rate_;
  uint32_t limit_;
  uint32_t counted_bytes_ = 0;  // of the present byte period
  uint32_t lateness_ns_;
  uint8_t time_stages_ = 0;
  uint8_t byte_stages_ = 0;
};

}  // namespace urma::congestion
