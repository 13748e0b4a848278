// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "apps/urma_stat/look.h"

namespace urma::apps::stat {

// Returns the counters and channels of a look in the text format that Prometheus reads (version
// 0.0.4). Names are urma_NAME_total of counters, urma_NAME of present values, and urma_channel_...;
// labels say which device of which process.
//
// `most_bytes`: beyond this size about, further devices are left out and counted, because the pages
// of hostile users must not exhaust the memory. Those of this user come first. A device of this
// library has about 40 KB without channels.
std::string prometheus_text(const Look& look, size_t most_bytes = size_t{64} << 20);

}  // namespace urma::apps::stat
