// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/common/failure.h"
#include "apps/urma_ping/options.h"

namespace urma::apps::ping {

// Answers pings at all EIDs of this host, or at one, until Ctrl-C. Throws a Failure if it can
// answer at none.
Exit serve(const Options& options);

}  // namespace urma::apps::ping
