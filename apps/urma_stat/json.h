// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "apps/urma_stat/look.h"

namespace urma::apps::stat {

// Returns one object and the end of its line: on several lines without an interval, on one line
// with an interval.
std::string look_json(const Look& look, std::optional<double> interval_seconds);
std::string metrics_json();

}  // namespace urma::apps::stat
