#pragma once

#include <string>
#include <string_view>

#include "urma/urma.hpp"

namespace urma::info {

// One screen.
std::string help();
// Describes the device strings of a driver. Throws a Failure that names the drivers if this is not
// one of them.
std::string help_on(std::string_view driver);
// How a driver's device strings are written, with each option.
std::string to_text(const FormInfo& form);

}  // namespace urma::info
