#pragma once

#include <cstdint>
#include <random>

namespace urma::perf {

// Places to go to, some nanoseconds each, the same ones in each run.
class Draw {
 public:
  explicit Draw(uint64_t seed) : engine_(static_cast<uint32_t>(seed)) {}

  // One of the first `count`, at most 2^31 of them.
  uint64_t of(uint64_t count) { return engine_() * count >> 31; }

 private:
  std::minstd_rand engine_;
};

}  // namespace urma::perf
