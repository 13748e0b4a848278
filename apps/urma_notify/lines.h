// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace urma::apps::notify {

// Prints a line on stdout; any thread may call it. A line that cannot be printed does not end the
// transfer of a file: the first such failure is printed on stderr.
void say_line(const std::string& line);

// Prints a line on stderr, with the name of this program.
void complain(std::string_view what);

}  // namespace urma::apps::notify
