#pragma once

#include <string>

namespace urma::apps::perf {

// Prints how the results of one file that --json has written differ from those of another: a line
// for each test, device and size that both have. A difference counts if the rounds of the two do
// not overlap. Throws a Failure if a file is not one, or nothing can be compared.
void print_comparison(const std::string& before, const std::string& after);

}  // namespace urma::apps::perf
