#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "urma/core/statistics.h"

namespace urma::perf {

using Counters = std::map<std::string, uint64_t>;

// All totals of a device by their names in `Statistics`, less what they were at the beginning.
Counters difference(const Statistics& end, const Statistics& begin);

// Both sides' counters as one list: "client_...", "server_..." and, for what the table shows, sums.
Counters combine(const Counters& client, const Counters& server);

}  // namespace urma::perf
