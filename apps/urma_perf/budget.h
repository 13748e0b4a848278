// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/common/failure.h"
#include "apps/urma_perf/options.h"

namespace urma::apps::perf {

inline constexpr uint32_t least_budget_jetties = 256;
inline constexpr uint32_t most_budget_jetties = 999'998;

// Measures the cost of many objects: idle Jetties, peers with an idle channel, how fast Jetties are
// created, and a post to any one of them. Prints it beside the sum of the parts of each object.
// Returns Exit::threshold if a bound does not hold.
Exit budget(const Options& options);

}  // namespace urma::apps::perf
