// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "apps/urma_feed/messages.h"

namespace urma::apps::feed {

// How long messages that found the consumer asleep took, from the post by their producer until the
// consumer handled them. Counts durations with an error of at most 1/32. Messages from other hosts
// are left out, because their clocks differ.
class WakeUps {
 public:
  void add(const Stamp& posted, const Stamp& now);
  uint64_t count() const { return count_; }
  uint64_t foreign() const { return foreign_; }
  // Returns a duration in nanoseconds that this share of all, 0 to 1, does not exceed.
  uint64_t quantile(double share) const;
  uint64_t most() const { return most_; }

 private:
  static constexpr unsigned precision_bits = 5;
  static constexpr uint64_t per_octave = 1 << precision_bits;
  static size_t cell_of(uint64_t nanoseconds);
  static uint64_t upper_end(size_t cell);

  std::array<uint64_t, per_octave*(65 - precision_bits)> cells_{};
  uint64_t count_ = 0;
  uint64_t foreign_ = 0;
  uint64_t most_ = 0;
};

}  // namespace urma::apps::feed
