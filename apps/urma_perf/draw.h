// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <random>

namespace urma::apps::perf {

// Draws random positions in a few nanoseconds each, the same ones in each run.
class Draw {
 public:
  explicit Draw(uint64_t seed) : engine_(static_cast<uint32_t>(seed)) {}

  // Returns a number below `count`, which is at most 2^31.
  uint64_t of(uint64_t count) { return engine_() * count >> 31; }

 private:
  std::minstd_rand engine_;
};

}  // namespace urma::apps::perf
