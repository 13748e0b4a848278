#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "urma/urma.hpp"

namespace urma::info {

// By its name or its number. A Failure that names those with names like it, if there is none.
const StatusInfo& find_status(std::string_view text);

nlohmann::json to_json(const StatusInfo& info);
// All that is known of it.
std::string to_text(const StatusInfo& info);
// A line.
std::string to_line(const StatusInfo& info);

}  // namespace urma::info
