// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "urma/urma.hpp"

namespace urma::apps::info {

// Returns one screen of help.
std::string help();
// Describes the device strings of a driver. Throws a Failure that lists the drivers if there is
// none of this name.
std::string help_on(std::string_view driver);
// Returns how the device strings of a driver are written, with each option.
std::string to_text(const FormInfo& form);

}  // namespace urma::apps::info
