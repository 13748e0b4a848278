// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/prng.h"

namespace urma {

// The source of tokens, incarnations, numbers and cookies. It is injected, so that a simulated
// world depends only on its seed; outside simulations it is always the kernel's generator.
class Entropy {
 public:
  virtual ~Entropy() = default;
  virtual uint64_t next() = 0;

  uint32_t next32() { return static_cast<uint32_t>(next() >> 32); }
  // Returns a number that is uniform in [0, bound); bound > 0.
  uint32_t below(uint32_t bound) {
    return static_cast<uint32_t>((uint64_t{next32()} * bound) >> 32);
  }
};

// getrandom(2), 256 bytes at a time. Used by one thread at a time.
class SecureEntropy final : public Entropy {
 public:
  // Returns whether this process may use getrandom: a sandbox may forbid it.
  static bool available();
  uint64_t next() override;

 private:
  static constexpr unsigned batch = 32;
  uint64_t numbers_[batch] = {};
  unsigned left_ = 0;
};

// A generator that repeats its numbers from the same seed, for simulations.
class SeededEntropy final : public Entropy {
 public:
  explicit SeededEntropy(uint64_t seed) : prng_(seed) {}
  uint64_t next() override { return prng_.next(); }

 private:
  Prng prng_;
};

}  // namespace urma
