#pragma once

#include "congestion/controller.h"

namespace urma::congestion {

// The whole of what the receiver can buffer, always: for lossless media and for measuring what the
// other controllers cost.
class Fixed final : public Controller {
 public:
  explicit Fixed(const Settings& settings) : window_(settings.limit_bytes) {}

  void handle(const Acknowledged&) override {}
  void handle(const Lost&) override {}
  uint64_t window_bytes() const override { return window_; }

 private:
  uint64_t window_;
};

}  // namespace urma::congestion
