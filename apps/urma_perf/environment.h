// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace urma::apps::perf {

// Describes what a figure depends on besides the program: kernel, processor, compiler, settings,
// date.
nlohmann::json environment(const std::vector<std::string>& command);

}  // namespace urma::apps::perf
