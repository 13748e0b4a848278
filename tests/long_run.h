// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>

namespace urma::test {

// Returns whether the tests run in the sizes that take hours (ctest --preset long sets URMA_LONG).
inline bool long_run() { return std::getenv("URMA_LONG") != nullptr; }

}  // namespace urma::test
