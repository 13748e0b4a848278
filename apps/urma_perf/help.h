#pragma once

#include <string>

namespace urma::perf {

// One screen: examples, then the options that matter.
std::string help();
// And what else there is: the other options, what is measured and checked when, exit codes.
std::string help_all();

}  // namespace urma::perf
