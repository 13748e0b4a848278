// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstdlib>

namespace urma::test {

// Returns the seed that random tests use in addition to their fixed ones: URMA_TEST_SEED, which
// ./check derives from the commit. If it is not set, returns 0, and only the fixed seeds run.
inline uint64_t fresh_seed() {
  const char* const text = std::getenv("URMA_TEST_SEED");
  return text != nullptr ? std::strtoull(text, nullptr, 10) : 0;
}

}  // namespace urma::test
