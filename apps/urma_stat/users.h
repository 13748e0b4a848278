// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "apps/urma_stat/look.h"

namespace urma::apps::stat {

// Returns the name of a user, made safe for a terminal, or the number if it has none.
std::string user_name(uint32_t uid);
// Returns the user with this name or number.
std::optional<uint32_t> find_user(std::string_view word);
// Returns whether the process of a device belongs to another user than this one.
bool is_of_another_user(const Row& row);

}  // namespace urma::apps::stat
