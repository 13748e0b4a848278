// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "congestion/controller.h"

namespace urma::congestion {

// A constant window of all that the receiver can buffer: for media without loss, and to measure
// what other controllers cost.
class Fixed final : public Controller {
 public:
  explicit Fixed(const Settings& settings) : window_(settings.limit_bytes) {}

  Signal request(const Sent&) override { return {}; }
  void handle(const Acknowledged&) override {}
  void handle(const Lost&) override {}
  void handle(const Notified&) override {}
  void handle(const Spurious&) override {}
  Allowance allowance(Time) const override { return {window_, Time::min()}; }
  uint64_t window_bytes() const override { return window_; }

 private:
  uint64_t window_;
};

}  // namespace urma::congestion
