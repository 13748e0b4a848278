// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "urma/core/time.h"

namespace urma::fabric {

// A line of a fixed rate, on which packets leave one behind the other. The times of packets that
// leave without a pause are exact, so their rounding does not add up.
class Line {
 public:
  // At rate 0 a packet takes no time.
  explicit Line(uint64_t bytes_per_second = 0) : rate_(bytes_per_second) {}

  // Sends a packet behind the earlier ones, and not before `earliest`. Returns when its last byte
  // has left, rounded up to nanoseconds.
  Time send(uint32_t bytes, Time earliest) {
    if (earliest >= free_at_) {
      whole_ = free_at_ = earliest;
      part_ = 0;
    }
    if (rate_ == 0) return free_at_;
    const uint64_t parts = uint64_t{bytes} * 1'000'000'000 + part_;
    whole_ += Duration(static_cast<int64_t>(parts / rate_));
    part_ = parts % rate_;
    return free_at_ = whole_ + Duration(part_ != 0);
  }

  Time free_at() const { return free_at_; }
  uint64_t bytes_per_second() const { return rate_; }

 private:
  uint64_t rate_;
  // The last byte leaves at whole_ + part_ / rate_ ns; free_at_ is this, rounded up.
  Time whole_{};
  uint64_t part_ = 0;
  Time free_at_{};
};

}  // namespace urma::fabric
