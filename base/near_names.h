// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace urma {

// Returns up to three names that a mistyped word may stand for, with "or" between them, the most
// likely first: names that contain the word, or that differ from it in few letters. Empty if there
// are none. Both are compared as they are, so give them in the same case.
std::string near_names(std::string_view word, const std::vector<std::string>& names);

}  // namespace urma
