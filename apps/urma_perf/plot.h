// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "apps/urma_perf/result.h"

namespace urma::apps::perf {

// Draws results as an SVG. Results of several sizes become lines over the size: latency (p50, p99)
// and, for _bw tests, throughput. With a single size, latency over the percentile is drawn.
std::string plot(const std::vector<Result>& results, const std::string& note);

}  // namespace urma::apps::perf
