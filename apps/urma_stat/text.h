#pragma once

#include <optional>
#include <string>

#include "apps/urma_stat/look.h"

namespace urma::apps::stat {

// Returns a line for each device, with rates of counters if `rates`. If there is a limit to the
// width, a last line names the columns that were left out.
std::string table(const Look& look, bool rates, std::optional<size_t> room = {});
// All metrics of each device.
std::string details(const Look& look, bool rates);
// The metrics that this version of the library has.
std::string metrics_text();

// Formats seconds since 1970 as local date and time.
std::string date(int64_t seconds);

}  // namespace urma::apps::stat
