// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "apps/common/failure.h"

namespace urma::apps::capi {

// Takes the log of the C API from now on: `failed` and `last_error` need it.
void keep_log();

// Returns the last error that a call of this thread logged, or an empty text. It contains the fix.
const std::string& last_error();

// Returns the Failure for a call that should have succeeded, with the reason that it logged.
Failure failed(std::string_view doing);

}  // namespace urma::apps::capi
