#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace urma::apps {

// The names that a mistyped word may stand for, up to three of them with "or" between, the
// likeliest first: names that contain it, or that differ from it in few letters. Empty if there are
// none.
std::string near_names(std::string_view word, const std::vector<std::string>& names);

}  // namespace urma::apps
