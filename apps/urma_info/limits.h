// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/urma_info/host.h"

namespace urma::apps::info {

// Returns the soft limit of this process from /proc/self/limits: UINT64_MAX if it is unlimited,
// nothing if the file does not have it.
std::optional<uint64_t> process_limit(const Host& host, std::string_view name);

// Returns the directories of the control groups of this process that apply to `controller`, its own
// group first, then the parents. Empty if there are none or they are not visible.
std::vector<std::string> control_groups(const Host& host, std::string_view controller);

// The smallest value of a limit in all groups of this process. `two` and `one` are the names of its
// file in versions 2 and 1. Empty if no group has the limit.
struct GroupLimit {
  std::string directory;
  uint64_t limit = 0;
};
std::optional<GroupLimit> group_limit(const Host& host, std::string_view controller,
                                      std::string_view two, std::string_view one);

}  // namespace urma::apps::info
