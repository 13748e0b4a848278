#pragma once

#include <optional>
#include <string>

#include "apps/urma_stat/look.h"

namespace urma::stat {

// A line for each device; what grows as rates, if `rates`. No wider than the room, if there is
// one: a last line says what that left out.
std::string table(const Look& look, bool rates, std::optional<size_t> room = {});
// All metrics of each device.
std::string details(const Look& look, bool rates);
// The metrics that this version of the library has.
std::string metrics_text();

// Seconds since 1970, as a clock on the wall.
std::string date(int64_t seconds);

}  // namespace urma::stat
