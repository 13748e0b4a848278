// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "apps/urma_sim/scenario.h"

namespace urma::apps::simulation {

// Samples of the bytes in a queue, counted in steps of 64 bytes.
class QueueSamples {
 public:
  static constexpr uint64_t step = 64;

  void add(uint64_t bytes) {
    const uint64_t at = (bytes + step - 1) / step;
    if (at >= counts_.size()) counts_.resize(at + 1);
    ++counts_[at];
    ++size_;
  }
  // Returns the bytes that this share of the samples does not exceed, rounded up to a step.
  uint64_t quantile(double share) const {
    auto left = static_cast<uint64_t>(std::ceil(share * static_cast<double>(size_)));
    for (uint64_t at = 0; at < counts_.size(); ++at) {
      if (counts_[at] >= left) return at * step;
      left -= counts_[at];
    }
    return 0;
  }
  uint64_t most() const { return counts_.empty() ? 0 : (counts_.size() - 1) * step; }
  // Returns how many samples had at most i packets and more than i - 1, for each i.
  std::vector<uint64_t> by_packets() const {
    std::vector<uint64_t> samples;
    for (uint64_t at = 0; at < counts_.size(); ++at) {
      if (counts_[at] == 0) continue;
      const uint64_t packets = (at * step + packet_bytes - step) / packet_bytes;
      if (packets >= samples.size()) samples.resize(packets + 1);
      samples[packets] += counts_[at];
    }
    return samples;
  }

 private:
  std::vector<uint64_t> counts_;
  uint64_t size_ = 0;
};

}  // namespace urma::apps::simulation
