#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/urma_info/host.h"

namespace urma::info {

// The soft limit of this process in /proc/self/limits: UINT64_MAX if it is unlimited, nothing if
// the file does not have it.
std::optional<uint64_t> process_limit(const Host& host, std::string_view name);

// The directories of the control groups that this process is in and that count for `controller`,
// its own first, then those around it. None: there are none, or they cannot be seen.
std::vector<std::string> control_groups(const Host& host, std::string_view controller);

// The least value of a limit in all groups of this process. `two` and `one` are the names of its
// file in version 2 and 1. Nothing if no group has the limit.
struct GroupLimit {
  std::string directory;
  uint64_t limit = 0;
};
std::optional<GroupLimit> group_limit(const Host& host, std::string_view controller,
                                      std::string_view two, std::string_view one);

}  // namespace urma::info
