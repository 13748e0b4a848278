// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "urma/urma.hpp"

namespace urma::apps::info {

// Finds a status by its name or number. Throws a Failure that lists similar names if there is none.
const StatusInfo& find_status(std::string_view text);

nlohmann::json to_json(const StatusInfo& info);
// Returns all that is known about the status.
std::string to_text(const StatusInfo& info);
// Returns one line about the status.
std::string to_line(const StatusInfo& info);

}  // namespace urma::apps::info
