// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <system_error>

#include "urma/core/export.h"
#include "urma/core/status.h"

namespace urma {

// The category of error codes whose values are those of Status: its name is "urma", and its
// messages are the meanings that `describe` returns. Any thread may call it.
URMA_API const std::error_category& status_category() noexcept;

// Returns the status as an error code, for code that handles those of several libraries:
// `if (code == urma::code_of(urma::Status::peer_restarted))`. A Status is not converted without
// this call, because with urma/asio.hpp it converts to boost::system::error_code.
inline std::error_code code_of(Status status) noexcept {
  return {static_cast<int>(status), status_category()};
}

}  // namespace urma
