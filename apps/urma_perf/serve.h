// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/common/failure.h"
#include "apps/urma_perf/options.h"

namespace urma::apps::perf {

// Runs `urma_perf server`: a Server on the named device, or else one on each of
// `devices_of_this_host`, each on its own thread. Ends with Ctrl-C or, with --once, with the first
// client.
Exit serve(const Options& options);

}  // namespace urma::apps::perf
