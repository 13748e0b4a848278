// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

#include "apps/urma_perf/result.h"

namespace urma::apps::perf {

inline constexpr const char* json_schema = "urma_perf/1";

nlohmann::json to_json(const Result& result);

}  // namespace urma::apps::perf
