#pragma once

#include <string>
#include <string_view>

namespace urma::notify {

// A line on stdout, from any thread. One that cannot be printed is no reason to give up a file:
// that is said once, on stderr.
void say_line(const std::string& line);

// The same on stderr, as this program's.
void complain(std::string_view what);

// Both print this of it. What a stranger says, for a terminal: a `?` for each control character
// (C0, DEL, C1), for each that turns the direction of text, and for each byte that is no UTF-8.
std::string printable(std::string_view text);

}  // namespace urma::notify
