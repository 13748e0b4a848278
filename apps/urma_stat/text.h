// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "apps/urma_stat/look.h"

namespace urma::apps::stat {

// Returns a line for each device, with rates of counters if `rates`. If there is a limit to the
// width, a last line names the columns that were left out.
std::string table(const Look& look, bool rates, std::optional<size_t> room = {});
// Returns the metrics of each device, those that are 0 only if `all`. If there is a limit to the
// width, texts that are longer are continued below.
std::string details(const Look& look, bool rates, bool all, std::optional<size_t> room = {});
// Returns how many bytes the works of a device move per second: in packets that were acknowledged,
// by copies, or by adapters. Empty if not known yet.
std::optional<double> bytes_rate(const Row& row);
// The metrics that this version of the library has.
std::string metrics_text();

// Formats seconds since 1970 as local date and time.
std::string date(int64_t seconds);

}  // namespace urma::apps::stat
