// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "apps/urma_sim/options.h"
#include "apps/urma_sim/run.h"

namespace urma::apps::simulation {

// urma_sim(1) describes the fields.
nlohmann::json report_json(const Options& options, const Plan& plan, const Result& result);
std::string report_text(const Options& options, const Plan& plan, const Result& result);

}  // namespace urma::apps::simulation
