// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/common/failure.h"
#include "apps/urma_stat/options.h"

namespace urma::apps::stat {

// Shows devices and channels on the whole terminal, sorted by rate, until the user ends it.
Exit show_top(const Options& options);

}  // namespace urma::apps::stat
