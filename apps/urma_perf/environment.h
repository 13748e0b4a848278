// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace urma::apps::perf {

// Returns the commit from which this program was built.
std::string_view commit();

// Describes what a figure depends on besides the program: kernel, processor, compiler, settings,
// date.
nlohmann::json environment(const std::vector<std::string>& command);

}  // namespace urma::apps::perf
