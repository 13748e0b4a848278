// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace urma::apps::perf {

// Returns one screen: examples, and the most important options.
std::string help();
// Returns the rest: the other options, what is measured and checked and when, and the exit codes.
std::string help_all();

}  // namespace urma::apps::perf
