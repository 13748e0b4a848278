#pragma once

#include "apps/urma_perf/failure.h"
#include "apps/urma_perf/options.h"

namespace urma::perf {

inline constexpr uint32_t least_budget_jetties = 256;
inline constexpr uint32_t most_budget_jetties = 999'998;

// Measures the cost of many objects, beside the sum of their parts: idle Jetties, peers with an
// idle channel, how fast Jetties are made, and what a post to any one of them costs. Returns
// Exit::threshold when a bound is missed.
Exit budget(const Options& options);

}  // namespace urma::perf
