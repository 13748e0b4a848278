// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "urma/core/statistics.h"

namespace urma::apps::perf {

using Counters = std::map<std::string, uint64_t>;

// Returns all counters of a device by their names in `Statistics`, less their values at the
// beginning.
Counters difference(const Statistics& end, const Statistics& begin);

// Returns the counters of both sides as one list: "client_...", "server_...", and sums for what the
// table shows.
Counters combine(const Counters& client, const Counters& server);

}  // namespace urma::apps::perf
