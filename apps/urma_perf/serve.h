#pragma once

#include "apps/urma_perf/failure.h"
#include "apps/urma_perf/options.h"

namespace urma::perf {

// `urma_perf server`: a Server on the device that is named, or else one on each of
// `devices_of_this_host`, on a thread each. Ends with Ctrl-C or, if asked to, with the first
// client.
Exit serve(const Options& options);

}  // namespace urma::perf
