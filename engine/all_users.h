// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "urma/core/observed.h"
#include "urma/core/result.h"

namespace urma::engine {

// Reads the pages of this user's devices as StatsFiles::look does, and those of other users as far
// as this process may. It trusts nothing that another user wrote: `all_users.cc` has the rules.
// `parent` has a directory urma-devices-UID for each user.
// Errors: permission_denied, io_error.
Result<Observed> look_at_all_users(const std::string& parent = "/dev/shm");

}  // namespace urma::engine
