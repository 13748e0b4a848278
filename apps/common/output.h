#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace urma::apps {

// All of it to the descriptor. False: errno.
bool write_all(int descriptor, std::string_view text);

// On stdout, now. A Failure when not all of it could be written; `what` begins its message.
void print(std::string_view text, std::string_view what = "output");
// The same for one object, with an end of line.
void print_json(const nlohmann::json& whole);

}  // namespace urma::apps
