// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "apps/urma_switch/loop.h"

namespace urma::apps::switches {

// The counters of a switch since its start, for programs and for people. `seconds`: how long it has
// run.
nlohmann::json report_json(const Loop& loop, double seconds);
std::string report_text(const Loop& loop, double seconds);

}  // namespace urma::apps::switches
