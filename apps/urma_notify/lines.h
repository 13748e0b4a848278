#pragma once

#include <string>

namespace urma::notify {

// A line on stdout, from any thread. One that cannot be printed is no reason to give up a file:
// that is said once, on stderr.
void say_line(const std::string& line);

}  // namespace urma::notify
