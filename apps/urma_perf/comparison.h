// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace urma::apps::perf {

// Prints how the results of two files that --json has written differ: a line for each test that
// both have with the same device, size and options. A difference counts if the rounds of the two do
// not overlap. Throws a Failure if a file is not from --json, or the two have no test in common.
void print_comparison(const std::string& before, const std::string& after);

}  // namespace urma::apps::perf
