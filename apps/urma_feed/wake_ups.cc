// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_feed/wake_ups.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace urma::apps::feed {

// The first cells are as wide as 1 ns; then each doubling has as many cells.
size_t WakeUps::cell_of(uint64_t nanoseconds) {
  if (nanoseconds < per_octave) return nanoseconds;
  const auto shift = static_cast<unsigned>(std::bit_width(nanoseconds)) - 1 - precision_bits;
  return (shift + 1) * per_octave + (nanoseconds >> shift) - per_octave;
}

uint64_t WakeUps::upper_end(size_t cell) {
  if (cell < per_octave) return cell;
  const unsigned shift = static_cast<unsigned>(cell / per_octave) - 1;
  return ((per_octave + cell % per_octave + 1) << shift) - 1;
}

void WakeUps::add(const Stamp& posted, const Stamp& now) {
  if (posted.host == 0 || posted.host != now.host || posted.nanoseconds > now.nanoseconds) {
    ++foreign_;
    return;
  }
  const uint64_t took = now.nanoseconds - posted.nanoseconds;
  ++cells_[cell_of(took)];
  ++count_;
  most_ = std::max(most_, took);
}

uint64_t WakeUps::quantile(double share) const {
  const auto wanted = static_cast<uint64_t>(std::ceil(share * static_cast<double>(count_)));
  uint64_t seen = 0;
  for (size_t cell = 0; cell < cells_.size(); ++cell) {
    seen += cells_[cell];
    if (seen >= wanted && seen > 0) return std::min(upper_end(cell), most_);
  }
  return most_;
}

}  // namespace urma::apps::feed
