#pragma once

#include "apps/urma_perf/failure.h"
#include "apps/urma_perf/options.h"

namespace urma::perf {

// urma_perf reg --self: what it takes to register memory and to take it away again, against size,
// alone; with --churn so many times a second, while another device writes there.
Exit measure_registration(const Options& options);

}  // namespace urma::perf
