// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/common/failure.h"
#include "apps/urma_perf/options.h"

namespace urma::apps::perf {

// Runs urma_perf reg --self: measures the times to register and to unregister memory, for each
// size; with --churn this many times a second while another device writes to it.
Exit measure_registration(const Options& options);

}  // namespace urma::apps::perf
