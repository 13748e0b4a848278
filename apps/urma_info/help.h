#pragma once

#include <string>
#include <string_view>

#include "urma/urma.hpp"

namespace urma::info {

// One screen.
std::string help();
// What this driver's device strings take. A Failure that names those there are, if there is none.
std::string help_on(std::string_view driver);
// How a driver's device strings are written, with each option.
std::string to_text(const FormInfo& form);

}  // namespace urma::info
