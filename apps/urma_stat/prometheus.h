// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "apps/urma_stat/look.h"

namespace urma::apps::stat {

// Returns the counters and channels of a look in the text format that Prometheus reads (version
// 0.0.4). Names are urma_NAME_total of counters, urma_NAME of present values, and urma_channel_...;
// labels say which device of which process.
std::string prometheus_text(const Look& look);

}  // namespace urma::apps::stat
