// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/common/failure.h"
#include "apps/urma_perf/options.h"

namespace urma::apps::perf {

// Measures flows between several processes at the same time: those of --bidirectional, or of
// --pattern for each number of --processes. Prints the sum of each as a row.
Exit measure_group(const Options& options);

}  // namespace urma::apps::perf
