// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "apps/urma_perf/histogram.h"

namespace urma::apps::perf {

// Returns a histogram in the text format that HdrHistogram's plotters and `HistogramLogProcessor`
// write and read (.hgrm): lines of value, percentile, number of values up to it, and
// 1 / (1 - percentile). Values are in microseconds. Between two halvings of the distance to 100 %
// lie five lines.
std::string hgrm_text(const Histogram& histogram, double units_per_us);

}  // namespace urma::apps::perf
